// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage/stream"
)

// maxContainers is the maximum number of containers of one node: about 1,000 pods of four.
const maxContainers = 4096

var errTooMany = fmt.Errorf("it has more than %d containers, the maximum that memfit reads from a node", maxContainers)

// DecodeSummary reads a /stats/summary, and passes one sample per container with known memory to take. It skips
// containers without numbers, without a time or with only zeros (their cgroup was removed). After an error the caller
// must drop all samples, because the response is incomplete.
func DecodeSummary(r io.Reader, take func(memory.Sample)) error {
	read := 0
	err := stream.Items(r, "pods", func(d *jsontext.Decoder) error {
		var pod podStats
		if err := stream.Decode(d, &pod); err != nil {
			return err
		}
		if read += pod.Containers.read; read > maxContainers {
			return errTooMany
		}
		pod.samples(take)
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the summary: %w", err)
	}
	return nil
}

// These types have the relevant fields of a summary. The full types in k8s.io/kubelet/pkg/apis/stats/v1alpha1 take four
// to seven times as long to decode, and twelve times the memory (BenchmarkDecodeSummary). A missing number is nil.
type (
	podStats struct {
		Ref struct {
			Name      string    `json:"name"`
			Namespace string    `json:"namespace"`
			UID       types.UID `json:"uid"`
		} `json:"podRef"`
		Swap       swapStats  `json:"swap"`
		Containers containers `json:"containers"`
	}
	containerStats struct {
		Name    string    `json:"name"`
		Started time.Time `json:"startTime"`
		Memory  struct {
			Time        time.Time `json:"time"`
			RSS         *uint64   `json:"rssBytes"`
			WorkingSet  *uint64   `json:"workingSetBytes"`
			Usage       *uint64   `json:"usageBytes"`
			MajorFaults *uint64   `json:"majorPageFaults"`
			// Pressure has the share of time in which all tasks of the container waited for memory. PSI also has a total, which
			// is not read because its unit depends on the kubelet.
			Pressure struct {
				Full struct {
					Percent float64 `json:"avg300"`
				} `json:"full"`
			} `json:"psi"`
		} `json:"memory"`
		Swap swapStats `json:"swap"`
	}
	swapStats struct {
		Used      *uint64 `json:"swapUsageBytes"`
		Available *uint64 `json:"swapAvailableBytes"`
	}
)

// containers are the containers of one pod.
type containers struct {
	read        int
	samples     []memory.Sample // of the containers with known memory
	swapUnknown []int           // indices of samples whose swap may be unknown
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom]. Only samples are kept.
func (c *containers) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var one containerStats
	return stream.Array(d, func() error {
		if c.read++; c.read > maxContainers {
			return errTooMany
		}
		one = containerStats{}
		if err := stream.Decode(d, &one); err != nil {
			return err
		}
		if s := one.sample(); s.Container.Container != "" && !s.Time.IsZero() && (s.RSS > 0 || s.WorkingSet > 0) {
			if one.Swap.swapUnknown() {
				c.swapUnknown = append(c.swapUnknown, len(c.samples))
			}
			c.samples = append(c.samples, s)
		}
		return nil
	})
}

func (c *containerStats) sample() memory.Sample {
	m := &c.Memory
	s := memory.Sample{
		Container: memory.ContainerRef{Container: c.Name}, Time: m.Time, Started: c.Started,
		WorkingSet: reportedBytes(m.WorkingSet), Usage: reportedBytes(m.Usage), Swap: reportedBytes(c.Swap.Used),
	}
	s.RSS, s.HasRSS = reported[memory.Bytes](m.RSS)
	s.MajorFaults, s.HasMajorFaults = reported[int64](m.MajorFaults)
	if share := m.Pressure.Full.Percent; share >= 0 && share <= 100 {
		s.WaitedPercent = share
	}
	return s
}

// reported converts a number of bytes or events; known is false if the number is missing or impossible.
func reported[T ~int64](n *uint64) (v T, known bool) {
	if n == nil || *n > math.MaxInt64 {
		return 0, false
	}
	return T(*n), true
}

func reportedBytes(n *uint64) memory.Bytes {
	b, _ := reported[memory.Bytes](n)
	return b
}

// swapUnknown reports whether the swap of a container may be unknown. A kubelet reports that none is used and none is
// available both for a container that may not swap, and for one that cAdvisor does not know.
func (s *swapStats) swapUnknown() bool {
	return s.Used != nil && *s.Used == 0 && s.Available != nil && *s.Available == 0
}

// sandboxSwap is more than the swap of a pod's sandbox (the process pause, some 300 KiB).
const sandboxSwap = memory.MiB

// samples passes the samples of a pod to take. If the swap of one container is unknown, it is the swap of the pod that
// the other containers do not use. If the swap of several containers is unknown, it remains unknown.
func (p *podStats) samples(take func(memory.Sample)) {
	ref, c := &p.Ref, &p.Containers
	if ref.Name == "" || ref.Namespace == "" {
		return
	}
	rest := reportedBytes(p.Swap.Used)
	for i := range c.samples {
		rest = rest.Minus(c.samples[i].Swap)
	}
	if len(c.swapUnknown) == 1 && rest >= sandboxSwap {
		c.samples[c.swapUnknown[0]].Swap = rest
	}
	for _, s := range c.samples {
		s.Container.Namespace, s.Container.Pod, s.Container.UID = ref.Namespace, ref.Name, ref.UID
		take(s)
	}
}
