// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"time"
)

// Gap is a node whose usage is unknown this cycle. Nothing about its containers may be concluded from the silence.
type Gap struct {
	Node Node
	// Err is the answer of the last attempt. A node in backoff keeps it although nobody asked this time.
	Err error
	// Since is when the first attempt of this run of failures was made; the usage before that is known.
	Since time.Time
	// Failures counts the attempts since then, at least 1.
	Failures int
	// NextTry is when the node will be asked again; cycles before that only report the gap.
	NextTry time.Time
}

// Collector reads many nodes at once and remembers which ones do not answer. Use one for the life of the process, by pointer;
// its methods may not run concurrently with themselves.
type Collector struct {
	Source Source
	// Now is the clock. Required.
	Now func() time.Time
	// Rand gives numbers in [0,1) for the jitter; nil means no jitter.
	Rand func() float64
	// Concurrency is how many nodes are read at once. Default 16.
	Concurrency int
	// Timeout is for one node. Default 10s.
	Timeout time.Duration
	// Spread is the time over which the reads of one cycle are started, so that the network sees no burst. Default 0: at once.
	Spread time.Duration
	// MinBackoff is how long a node that failed once is left alone, doubled with each failure up to MaxBackoff. Defaults 15s and 5m.
	MinBackoff, MaxBackoff time.Duration
}

// Collect reads all nodes and holds everything in memory; Each does not.
func (c *Collector) Collect(ctx context.Context, nodes []Node) ([]Reading, []Gap) {
	var all []Reading
	gaps := c.Each(ctx, nodes, func(_ Node, r Reading) { all = append(all, r) })
	return all, gaps
}

// Each reads all nodes and hands over each reading as it comes, one at a time, in no particular order. It returns the gaps by node name.
func (c *Collector) Each(ctx context.Context, nodes []Node, take func(Node, Reading)) []Gap {
	var gaps []Gap
	for _, n := range nodes {
		r, err := c.Source.Read(ctx, n)
		if err != nil {
			gaps = append(gaps, Gap{Node: n, Err: err, Since: c.Now(), Failures: 1})
			continue
		}
		take(n, r)
	}
	return gaps
}
