// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package metricsapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

var errNoList = errors.New("there is no list of items in it")

// podMetrics is the part of k8s.io/metrics/pkg/apis/metrics/v1beta1 that is read. The amount of memory is not decoded
// as a resource.Quantity, which takes minutes for some (see [memory.ParseQuantity]).
type podMetrics struct {
	Metadata   struct{ Name, Namespace string }
	Timestamp  string
	Containers []struct {
		Name  string
		Usage struct{ Memory json.RawMessage }
	}
}

const (
	// longestPod is what one pod of the list may take, and whatever comes before the first: a container takes some 100
	// bytes.
	longestPod = 1 << 20
	// mostContainers is what a pod may have; memfit makes no plans for pods with more, either.
	mostContainers = 256
)

var (
	errLongPod        = fmt.Errorf("one pod takes more than %s", memory.Bytes(longestPod))
	errManyContainers = fmt.Errorf("a pod has more than %d containers, the most memfit reads of one", mostContainers)
)

// portions reads one pod after the other. A decoder holds all of what it decodes at a time, and a pod without an end
// would be the whole answer.
type portions struct {
	io.Reader

	left int
}

func (p *portions) Read(into []byte) (int, error) {
	if p.left <= 0 {
		return 0, errLongPod
	}
	// As much as fits: the decoder reads all space again with every read, and a sender of single bytes would keep it
	// busy.
	n, err := io.ReadFull(p.Reader, into[:min(len(into), p.left)])
	p.left -= n
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// Decode reads a PodMetricsList pod by pod and hands over one sample per container, with the working set only.
// Containers without memory, without a time or with 0 are left out. What was handed over before an error must be
// dropped by the caller.
func Decode(r io.Reader, take func(memory.Sample)) error {
	pods := &portions{r, longestPod}
	d := json.NewDecoder(pods)
	if err := toItems(d); err != nil {
		return fmt.Errorf("reading the list of pod metrics: %w", err)
	}
	for d.More() {
		var pod podMetrics
		if err := d.Decode(&pod); err != nil {
			return fmt.Errorf("reading the list of pod metrics: %w", err)
		}
		if len(pod.Containers) > mostContainers {
			return fmt.Errorf("reading the list of pod metrics: %w", errManyContainers)
		}
		samples(&pod, take)
		pods.left = longestPod
	}
	if _, err := d.Token(); err != nil { // the closing bracket: without it the list is torn
		return fmt.Errorf("reading the list of pod metrics: %w", torn(err))
	}
	return nil
}

// toItems reads up to the first item.
func toItems(d *json.Decoder) error {
	if t, err := d.Token(); err != nil {
		return torn(err)
	} else if t != json.Delim('{') {
		return errNoList
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return torn(err)
		}
		if key != "items" {
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return torn(err)
			}
			continue
		}
		if t, err := d.Token(); err != nil {
			return torn(err)
		} else if t != json.Delim('[') {
			return errNoList
		}
		return nil
	}
	return errNoList
}

func torn(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
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

// amount reads a quantity that another party wrote; what is not one is unknown: 0.
func amount(quantity string) memory.Bytes {
	q, err := memory.ParseQuantity(quantity)
	if err != nil {
		return 0
	}
	return memory.FromQuantity(q)
}
