// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package metricsapi

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage/stream"
)

// podMetrics has the relevant fields of k8s.io/metrics/pkg/apis/metrics/v1beta1. It does not decode memory as a
// resource.Quantity, which may take minutes (see [memory.ParseQuantity]).
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

// mostContainers bounds the containers of a pod, as for plans.
const mostContainers = 256

var errManyContainers = fmt.Errorf("a pod has more than %d containers, the maximum that memfit reads", mostContainers)

// containers are those of one pod.
type containers []containerMetrics

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (c *containers) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return stream.Array(d, func() error {
		if len(*c) == mostContainers {
			return errManyContainers
		}
		*c = append(*c, containerMetrics{})
		return stream.Decode(d, &(*c)[len(*c)-1])
	})
}

// Decode reads a PodMetricsList pod by pod and passes on one sample per container, with only the working set. It skips
// containers without memory, without a time or with 0. After an error the caller must drop all samples.
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
		take(memory.Sample{
			Container:  memory.ContainerRef{Namespace: pod.Metadata.Namespace, Pod: pod.Metadata.Name, Container: c.Name},
			Time:       at,
			WorkingSet: ws,
		})
	}
}

// amount parses an untrusted quantity; 0 if invalid.
func amount(quantity string) memory.Bytes {
	q, err := memory.ParseQuantity(quantity)
	if err != nil {
		return 0
	}
	return memory.FromQuantity(q)
}
