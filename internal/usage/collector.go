// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// Gap is a node whose usage is unknown this cycle. Nothing about its containers may be concluded from the silence.
type Gap struct {
	Node Node
	// Err is the answer of the last attempt. A node in backoff keeps it although it was not asked this time.
	Err error
	// Since is when the first attempt of this run of failures was made: what was read before it is known, what happened
	// after is not.
	Since time.Time
	// Failures counts the attempts since then. 0: the cycle ended before the node was asked.
	Failures int
	// NextTry is when the node will be asked again at the earliest; cycles before that only report the gap.
	NextTry time.Time
}

// Collector reads many nodes concurrently and remembers which ones do not answer. Use one for the life of the process,
// by pointer; a cycle must end before the next one starts.
type Collector struct {
	Source Source
	// Now is the clock. Required.
	Now func() time.Time
	// Rand gives numbers in [0,1) for jitter and order. Nil: nodes are asked in the order given, at even distances.
	Rand func() float64
	// Concurrency is how many nodes are read concurrently. Default 16.
	Concurrency int
	// Timeout is for one node, over all sources of a [Fallback]. Default 30s.
	Timeout time.Duration
	// Spread is the time over which the reads of one cycle are started, so that neither the network nor memfit sees a
	// burst. Default 0: immediately. Half of the cycle is a good value.
	Spread time.Duration
	// MinBackoff is how long a node that failed once is left alone, doubled with each failure up to MaxBackoff. Defaults
	// 15s and 5m. Jitter takes up to a fifth off, so that nodes that failed together are not asked together for ever.
	MinBackoff, MaxBackoff time.Duration

	silent map[string]*Gap // by node name
}

// Each reads all nodes and hands over each reading as it comes, in no particular order; calls of take do not overlap.
// It returns when all nodes have answered, failed or been passed over, with the gaps in the order of nodes. When ctx
// ends, the nodes that were not asked yet are gaps too, but that is not held against them.
func (c *Collector) Each(ctx context.Context, nodes []Node, take func(Node, Reading)) []Gap {
	c.forgetAllBut(nodes)
	gaps := make([]*Gap, len(nodes))
	due := make([]int, 0, len(nodes))
	started := c.Now()
	for i, n := range nodes {
		if g := c.silent[n.Name]; g != nil && started.Before(g.NextTry) {
			g.Node = n
			gaps[i] = g
			continue
		}
		due = append(due, i)
	}
	c.shuffle(due)

	var mu sync.Mutex
	c.parallel(ctx, len(due), func(turn int) {
		i := due[turn]
		at := c.Now()
		r, err := c.read(ctx, nodes[i])
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			delete(c.silent, nodes[i].Name)
			take(nodes[i], r)
		case ctx.Err() != nil:
			gaps[i] = c.passedOver(nodes[i], err, at)
		default:
			gaps[i] = c.failed(nodes[i], err, at)
		}
	})
	return present(gaps)
}

func (c *Collector) read(ctx context.Context, node Node) (Reading, error) {
	if err := ctx.Err(); err != nil {
		return Reading{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, 30*time.Second))
	defer cancel()
	r, err := c.Source.Read(ctx, node)
	if err != nil {
		return Reading{}, err
	}
	return plausible(r, c.Now())
}

// parallel runs work(0) to work(n-1), at most Concurrency of them concurrently and the starts spread over Spread.
func (c *Collector) parallel(ctx context.Context, n int, work func(turn int)) {
	running, started := make(chan struct{}, cmp.Or(c.Concurrency, 16)), c.Now()
	var wg sync.WaitGroup
	for turn, start := range c.starts(n) {
		c.wait(ctx, start-c.Now().Sub(started))
		running <- struct{}{}
		wg.Go(func() {
			work(turn)
			<-running
		})
	}
	wg.Wait()
}

// starts are the moments at which turns begin, from the start of the cycle: each has a place of its own within Spread,
// and a random point in that place. They are drawn before any turn runs, so Rand is never called from two goroutines at
// once.
func (c *Collector) starts(n int) []time.Duration {
	starts := make([]time.Duration, n)
	for turn := range starts {
		starts[turn] = time.Duration((float64(turn) + c.random()) / float64(n) * float64(c.Spread))
	}
	return starts
}

func (c *Collector) wait(ctx context.Context, d time.Duration) {
	if d <= 0 || ctx.Err() != nil {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// failed notes a failure and when to try again.
func (c *Collector) failed(node Node, err error, at time.Time) *Gap {
	g := c.silent[node.Name]
	if g == nil {
		g = &Gap{Since: at}
		if c.silent == nil {
			c.silent = map[string]*Gap{}
		}
		c.silent[node.Name] = g
	}
	g.Node, g.Err = node, err
	g.Failures++
	backoff, limit := cmp.Or(c.MinBackoff, 15*time.Second), cmp.Or(c.MaxBackoff, 5*time.Minute)
	for n := 1; n < g.Failures && backoff < limit; n++ {
		backoff *= 2
	}
	backoff = min(backoff, limit)
	g.NextTry = c.Now().Add(backoff - time.Duration(c.random()*float64(backoff)/5))
	return g
}

// passedOver is a gap that is not the node's fault: the cycle ended first.
func (c *Collector) passedOver(node Node, err error, at time.Time) *Gap {
	if g := c.silent[node.Name]; g != nil {
		return g
	}
	return &Gap{Node: node, Err: err, Since: at, NextTry: at}
}

// forgetAllBut drops what is known about nodes that no longer exist.
func (c *Collector) forgetAllBut(nodes []Node) {
	if len(c.silent) == 0 {
		return
	}
	kept := make(map[string]*Gap, len(c.silent))
	for _, n := range nodes {
		if g := c.silent[n.Name]; g != nil {
			kept[n.Name] = g
		}
	}
	c.silent = kept
}

// shuffle changes the order from cycle to cycle, so that a slow node delays others only now and then.
func (c *Collector) shuffle(order []int) {
	if c.Rand == nil {
		return
	}
	for i := len(order) - 1; i > 0; i-- {
		j := min(int(c.Rand()*float64(i+1)), i)
		order[i], order[j] = order[j], order[i]
	}
}

func (c *Collector) random() float64 {
	if c.Rand == nil {
		return 0
	}
	return c.Rand()
}

func present(gaps []*Gap) []Gap {
	var all []Gap
	for _, g := range gaps {
		if g != nil {
			all = append(all, *g)
		}
	}
	return all
}
