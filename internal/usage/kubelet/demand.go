// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"hash/maphash"
	"math"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

const (
	// exactFor is how long a measurement of shared and kernel memory counts as exact. Counters are read every minute; ten
	// minutes bridge failed reads. An older measurement is still the best estimate.
	exactFor       = 10 * time.Minute
	forgottenAfter = time.Hour // after this, the entry of a node that is not read is deleted
)

// beyondRSS stores each container's shared and kernel memory until the counters are read again. A summary lacks it: it
// has only RSS, and the working set, which includes page cache. An entry takes some 40 bytes per container.
type beyondRSS struct {
	seed  maphash.Seed
	now   func() time.Time // nil: never delete nodes
	nodes map[string]nodeBeyond
	swept time.Time // time of the last sweep
}

type nodeBeyond struct {
	read       time.Time
	containers map[uint64]beyond // by hash of pod UID and container name
}

// beyond is one measurement of shared and kernel memory: its time in Unix seconds, and KiB.
type beyond struct{ at, kib uint32 }

func newBeyondRSS(now func() time.Time) beyondRSS {
	return beyondRSS{seed: maphash.MakeSeed(), now: now, nodes: map[string]nodeBeyond{}}
}

// requested reports whether the counters of a node were requested, successfully or not.
func (b *beyondRSS) requested(node string) bool {
	_, known := b.nodes[node]
	return known
}

// store stores the counters of a node. If counters is nil (after an error), the previous ones remain.
func (b *beyondRSS) store(node string, counters Counters) {
	n := b.nodes[node]
	if b.now != nil {
		n.read = b.now()
		b.sweep(n.read)
	}
	if counters != nil {
		n.containers = make(map[uint64]beyond, len(counters))
	}
	for ref, c := range counters {
		if at := c.Measured.Unix(); !c.Measured.IsZero() && at > 0 && at <= math.MaxUint32 {
			kib := min(c.SharedAndKernel.CeilTo(memory.KiB)/memory.KiB, math.MaxUint32)
			n.containers[b.key(&ref)] = beyond{uint32(at), uint32(kib)} //nolint:gosec // bounded above
		}
	}
	b.nodes[node] = n
}

// sweep deletes nodes that were not read for forgottenAfter.
func (b *beyondRSS) sweep(now time.Time) {
	if now.Sub(b.swept) < forgottenAfter/4 {
		return
	}
	b.swept = now
	for name, n := range b.nodes {
		if now.Sub(n.read) > forgottenAfter {
			delete(b.nodes, name)
		}
	}
}

// complete adds shared and kernel memory to the samples of a node. It ignores measurements from before the instance
// started. The amount is at most working set minus RSS, so that memory freed since the measurement does not count.
func (b *beyondRSS) complete(node string, samples []memory.Sample) {
	known := b.nodes[node].containers
	for i := range samples {
		s := &samples[i]
		m, found := known[b.key(&s.Container)]
		at := time.Unix(int64(m.at), 0)
		if !found || !s.HasRSS || at.Before(s.Started.Truncate(time.Second)) {
			continue
		}
		s.SharedAndKernel = memory.Bytes(m.kib) * memory.KiB
		if s.WorkingSet > 0 {
			s.SharedAndKernel = min(s.SharedAndKernel, s.WorkingSet.Minus(s.RSS))
		}
		s.Exact = s.Time.Sub(at).Abs() <= exactFor
	}
}

func (b *beyondRSS) key(c *memory.ContainerRef) uint64 {
	var h maphash.Hash
	h.SetSeed(b.seed)
	_, _ = h.WriteString(string(c.UID))
	_ = h.WriteByte(0)
	_, _ = h.WriteString(c.Container)
	return h.Sum64()
}
