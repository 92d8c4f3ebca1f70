// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage/stream"
)

// mostContainers is how many containers one node may have: ten times what 110 pods of 4 have, and four for each of
// 1,000.
const mostContainers = 4096

var errTooMany = fmt.Errorf("it has more than %d containers, the most memfit reads of a node", mostContainers)

// DecodeSummary reads a /stats/summary and hands over one sample per container whose memory the kubelet knows.
// Containers without figures, without a time or with nothing but zeros (their cgroup is already gone) are left out.
// What was handed over before an error must be dropped by the caller: an incomplete answer proves nothing about the
// containers it does not reach.
func DecodeSummary(r io.Reader, take func(memory.Sample)) error {
	read := 0
	err := stream.Items(r, "pods", func(d *jsontext.Decoder) error {
		var pod maybe[podStats]
		if err := stream.Decode(d, &pod); err != nil {
			return err
		}
		if read += pod.is.Containers.read; read > mostContainers {
			return errTooMany
		}
		pod.is.samples(take)
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the summary: %w", err)
	}
	return nil
}

// What is read of a summary; k8s.io/kubelet/pkg/apis/stats/v1alpha1 has all of it, in types that take four to seven
// times as long to decode, and twelve times the memory (BenchmarkDecodeSummary).
type (
	podStats struct {
		Ref        maybe[podRef]    `json:"podRef"`
		Swap       maybe[swapStats] `json:"swap"`
		Containers containers       `json:"containers"`
	}
	podRef struct {
		Name      text `json:"name"`
		Namespace text `json:"namespace"`
		UID       text `json:"uid"`
	}
	containerStats struct {
		Name    text               `json:"name"`
		Started moment             `json:"startTime"`
		Memory  maybe[memoryStats] `json:"memory"`
		Swap    maybe[swapStats]   `json:"swap"`
	}
	memoryStats struct {
		Time        moment             `json:"time"`
		RSS         count              `json:"rssBytes"`
		WorkingSet  count              `json:"workingSetBytes"`
		Usage       count              `json:"usageBytes"`
		MajorFaults count              `json:"majorPageFaults"`
		Pressure    maybe[memoryStall] `json:"psi"`
	}
	swapStats struct {
		Used      count `json:"swapUsageBytes"`
		Available count `json:"swapAvailableBytes"`
	}
	// memoryStall has the kernel's average of the time in which no task of the container could go on for want of memory.
	// The total beside it is in nanoseconds or in microseconds, depending on whether a kubelet has it from cAdvisor.
	memoryStall struct {
		Full maybe[struct {
			Percent percent `json:"avg300"`
		}] `json:"full"`
	}
)

// containers are those of one pod.
type containers struct {
	read    int
	samples []memory.Sample // of those whose memory is known
	untold  []int           // indices of samples whose swap the kubelet may not know
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom]. Only samples are kept.
func (c *containers) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var one maybe[containerStats]
	return stream.Array(d, func() error {
		if c.read++; c.read > mostContainers {
			return errTooMany
		}
		one = maybe[containerStats]{}
		if err := stream.Decode(d, &one); err != nil {
			return err
		}
		if s := one.is.sample(); s.Container.Container != "" && !s.Time.IsZero() && (s.RSS > 0 || s.WorkingSet > 0) {
			if one.is.Swap.is.untold() {
				c.untold = append(c.untold, len(c.samples))
			}
			c.samples = append(c.samples, s)
		}
		return nil
	})
}

func (c *containerStats) sample() memory.Sample {
	m, stall := &c.Memory.is, &c.Memory.is.Pressure.is.Full.is
	return memory.Sample{
		Container: memory.ContainerRef{Container: string(c.Name)}, Time: m.Time.Time, Started: c.Started.Time,
		RSS: memory.Bytes(m.RSS.n), HasRSS: m.RSS.known, WorkingSet: memory.Bytes(m.WorkingSet.n),
		Usage: memory.Bytes(m.Usage.n), MajorFaults: m.MajorFaults.n, HasMajorFaults: m.MajorFaults.known,
		WaitedPercent: float64(stall.Percent), Swap: memory.Bytes(c.Swap.is.Used.n),
	}
}

// untold: it reports that no swap is in use, and none available. A kubelet reports that of a container that may not
// swap, and of one that cAdvisor does not know: then it asks the container runtime, and containerd reports no swap.
func (s swapStats) untold() bool {
	none := count{known: true}
	return s.Used == none && s.Available == none
}

// sandboxSwap is more than what a pod's own process, pause, can have swapped out: it is some 300 KiB.
const sandboxSwap = memory.MiB

// samples hands over the samples of a pod. What the pod has swapped out beyond what is reported of its containers is
// that of the one without a report; of several, it is unknown whose it is.
func (p *podStats) samples(take func(memory.Sample)) {
	ref, c := &p.Ref.is, &p.Containers
	if ref.Name == "" || ref.Namespace == "" {
		return
	}
	rest := memory.Bytes(p.Swap.is.Used.n)
	for i := range c.samples {
		rest = rest.Minus(c.samples[i].Swap)
	}
	if len(c.untold) == 1 && rest >= sandboxSwap {
		c.samples[c.untold[0]].Swap = rest
	}
	for _, s := range c.samples {
		s.Container.Namespace, s.Container.Pod, s.Container.UID = string(ref.Namespace), string(ref.Name), types.UID(ref.UID)
		take(s)
	}
}
