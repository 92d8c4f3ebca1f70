// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package metricsapi reads usage from metrics.k8s.io (metrics-server), for clusters without access to kubelets or
// Prometheus. It reports only working sets. It makes one list request per cycle for all nodes, which needs RBAC list on
// pods of metrics.k8s.io.
package metricsapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
	"github.com/memfit/memfit/internal/usage/stream"
)

const (
	path    = "/apis/metrics.k8s.io/v1beta1/pods" // for all pods
	maxAge  = 10 * time.Second                    // how long a list or its error is used: metrics-server scrapes every 15s
	maxList = 512 * memory.MiB                    // size of a list: some 400 bytes per container
)

// Locate returns a pod's node and UID, which metrics.k8s.io does not report. Safe for concurrent use.
type Locate func(namespace, name string) (node string, uid types.UID, known bool)

// Source reads working sets from metrics.k8s.io. Safe for concurrent use.
type Source struct {
	client  *http.Client
	url     string
	locate  Locate
	now     func() time.Time
	max     memory.Bytes               // size of a list
	turn    chan struct{}              // a lock for the fields below, which a context can interrupt
	list    map[string][]memory.Sample // by node
	err     error                      // of the last request
	fetched time.Time                  // time of the last request
}

// New returns a Source for the API server of config.
func New(config *rest.Config, locate Locate, now func() time.Time) (*Source, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("creating the metrics.k8s.io client: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("creating the metrics.k8s.io client: %w", err)
	}
	return &Source{
		client: client, url: strings.TrimSuffix(base.String(), "/") + path, locate: locate,
		now: now, max: maxList, turn: make(chan struct{}, 1),
	}, nil
}

// Name implements [usage.Source].
func (s *Source) Name() string { return "metrics-api" }

// Read returns the working sets of the containers on node, from a list for all nodes that is used for maxAge. A node
// without containers is an error: every node runs some, so metrics-server cannot reach it.
func (s *Source) Read(ctx context.Context, node usage.Node) (usage.Reading, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return usage.Reading{}, fmt.Errorf("waiting for the list of metrics.k8s.io: %w", ctx.Err())
	}
	if s.fetched.IsZero() || s.now().Sub(s.fetched) >= maxAge {
		list, err := s.fetch(ctx)
		if err != nil && ctx.Err() != nil { // the deadline of one caller is not an error for the others
			return usage.Reading{}, err
		}
		s.list, s.err, s.fetched = list, err, s.now()
	}
	if s.err != nil {
		return usage.Reading{}, s.err
	}
	samples, ok := s.list[node.Name]
	if !ok {
		return usage.Reading{}, fmt.Errorf(
			"metrics.k8s.io has no pod of node %s: metrics-server may not reach its kubelet (see its log)", node.Name,
		)
	}
	return usage.Reading{Source: s.Name(), Samples: samples}, nil
}

// fetch requests the list and returns it by node.
func (s *Source) fetch(ctx context.Context) (map[string][]memory.Sample, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, explain(err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, explain(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, refused(resp.StatusCode)
	}
	byNode, seen := map[string][]memory.Sample{}, map[memory.ContainerRef]struct{}{}
	err = Decode(http.MaxBytesReader(nil, resp.Body, int64(s.max)), func(sample memory.Sample) {
		node, uid, known := s.locate(sample.Container.Namespace, sample.Container.Pod)
		sample.Container.UID = uid
		// duplicates are dropped, which bounds the memory for an endless list
		if _, again := seen[sample.Container]; known && !again {
			seen[sample.Container] = struct{}{}
			byNode[node] = append(byNode[node], sample)
		}
	})
	if err != nil {
		return nil, explain(err)
	}
	return byNode, nil
}

func refused(code int) error {
	advice := ""
	switch code {
	case http.StatusForbidden:
		advice = ". Grant memfit's service account `get` and `list` on pods of metrics.k8s.io"
	case http.StatusNotFound:
		advice = ". The API server does not serve it: install metrics-server"
	case http.StatusServiceUnavailable:
		advice = ". metrics-server does not answer: see `kubectl get apiservice v1beta1.metrics.k8s.io`"
	}
	return fmt.Errorf("metrics.k8s.io: %d %s%s", code, http.StatusText(code), advice)
}

func explain(err error) error { return fmt.Errorf("metrics.k8s.io: %w", usage.Cause(err)) }

// podMetrics has the relevant fields of PodMetrics (k8s.io/metrics/pkg/apis/metrics/v1beta1). It does not decode memory
// as a resource.Quantity, which may take minutes (see [memory.ParseQuantity]).
type podMetrics struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Timestamp  string     `json:"timestamp"`
	Containers containers `json:"containers"`
}

type containerMetrics struct {
	Name  string `json:"name"`
	Usage struct {
		Memory jsontext.Value `json:"memory"`
	} `json:"usage"`
}

// maxContainers is the maximum number of containers of a pod.
const maxContainers = 256

var errManyContainers = fmt.Errorf("a pod has more than %d containers, the maximum that memfit reads", maxContainers)

// containers are the containers of one pod.
type containers []containerMetrics

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (c *containers) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return stream.Array(d, func() error {
		if len(*c) == maxContainers {
			return errManyContainers
		}
		*c = append(*c, containerMetrics{})
		return stream.Decode(d, &(*c)[len(*c)-1])
	})
}

// Decode reads a PodMetricsList pod by pod, and passes one sample per container to take, with only the working set. It
// skips containers without memory or time. After an error the caller must drop all samples.
func Decode(r io.Reader, take func(memory.Sample)) error {
	err := stream.Items(r, "items", func(d *jsontext.Decoder) error {
		var pod podMetrics
		if err := stream.Decode(d, &pod); err != nil {
			return err
		}
		samples(&pod, take)
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the list of pod metrics: %w", err)
	}
	return nil
}

// samples passes the samples of a pod to take.
func samples(pod *podMetrics, take func(memory.Sample)) {
	at, err := time.Parse(time.RFC3339, pod.Timestamp)
	if err != nil || at.IsZero() || pod.Metadata.Name == "" || pod.Metadata.Namespace == "" {
		return
	}
	for _, c := range pod.Containers {
		ws := amount(strings.Trim(string(c.Usage.Memory), `"`))
		if ws == 0 || c.Name == "" {
			continue
		}
		ref := memory.ContainerRef{Namespace: pod.Metadata.Namespace, Pod: pod.Metadata.Name, Container: c.Name}
		take(memory.Sample{Container: ref, Time: at, WorkingSet: ws})
	}
}

// amount parses a quantity from the response; 0 if it is invalid.
func amount(quantity string) memory.Bytes {
	q, err := memory.ParseQuantity(quantity)
	if err != nil {
		return 0
	}
	return memory.FromQuantity(q)
}
