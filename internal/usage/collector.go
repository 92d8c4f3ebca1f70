// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
)

const (
	// nodeTimeout is for one node, over all sources of a [Fallback].
	nodeTimeout = 30 * time.Second
	// firstBackoff is how long a node that failed once is left alone.
	firstBackoff = 15 * time.Second
)

// Collector reads many nodes concurrently and remembers which ones do not answer. Use one for the life of the process,
// by pointer; a cycle must end before the next one starts.
type Collector struct {
	Source Source
	// Now is the clock. Required.
	Now func() time.Time
	// Concurrency is how many nodes are read concurrently. Default 16.
	Concurrency int
	// Spread is the time over which the reads of one cycle are started, so that neither the network nor memfit sees a
	// burst. Default 0: immediately. Half of the cycle is a good value.
	Spread time.Duration
	// MaxBackoff is how long a node that failed is left alone at most: twice as long after each failure. Default 5m.
	MaxBackoff time.Duration

	asked map[string]asked // by node name
}

// asked is what is known of a node. While it answers, all of its silence is zero but for Answered.
type asked struct {
	memory.Silence
	// failures counts the attempts since it answered last, and nextTry is when it is asked again at the earliest.
	failures int
	nextTry  time.Time
}

// Each reads all nodes and hands over each reading as it comes, in no particular order; calls of take do not overlap.
// It returns when all nodes have answered, failed or been passed over, with those of which usage is unknown now, in the
// order of nodes; nothing about their containers may be concluded from the silence. One in backoff has the answer of
// its last attempt. When ctx ends, nodes that were not asked yet are silent too, but that is not held against them.
func (c *Collector) Each(ctx context.Context, nodes []Node, take func(Node, Reading)) []memory.Silence {
	known := make(map[string]asked, len(nodes)) // what is known of other nodes, which no longer exist, goes
	silent := make([]memory.Silence, len(nodes))
	due := make([]int, 0, len(nodes))
	started := c.Now()
	for i, n := range nodes {
		of := c.asked[n.Name]
		if known[n.Name] = of; started.Before(of.nextTry) {
			silent[i] = of.Silence
		} else {
			due = append(due, i)
		}
	}
	c.asked = known
	// The order changes from cycle to cycle, so that a slow node delays others only now and then.
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })

	var mu sync.Mutex
	c.parallel(ctx, len(due), func(turn int) {
		i := due[turn]
		at := c.Now()
		r, err := c.read(ctx, nodes[i])
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			known[nodes[i].Name] = asked{Silence: memory.Silence{Answered: c.Now()}}
			take(nodes[i], r)
		case ctx.Err() != nil, nodes[i].Missing != nil: // it is not the node's fault
			silent[i] = known[nodes[i].Name].failedAt(nodes[i], err, at)
		default:
			of := known[nodes[i].Name]
			of.Silence = of.failedAt(nodes[i], err, at)
			of.failures++
			of.nextTry = c.Now().Add(c.backoff(of.failures))
			known[nodes[i].Name], silent[i] = of, of.Silence
		}
	})
	return slices.DeleteFunc(silent, func(s memory.Silence) bool { return s.Node == "" })
}

func (c *Collector) read(ctx context.Context, node Node) (Reading, error) {
	if err := cmp.Or(node.Missing, ctx.Err()); err != nil {
		return Reading{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	r, err := c.Source.Read(ctx, node)
	if err != nil {
		return Reading{}, err
	}
	return plausible(r, c.Now())
}

// parallel runs work(0) to work(n-1), at most Concurrency of them concurrently. Each turn starts at a random point in
// a place of its own within Spread.
func (c *Collector) parallel(ctx context.Context, n int, work func(turn int)) {
	running, started := make(chan struct{}, cmp.Or(c.Concurrency, 16)), c.Now()
	var wg sync.WaitGroup
	for turn := range n {
		start := (float64(turn) + rand.Float64()) / float64(n) * float64(c.Spread) //nolint:gosec // no secret
		wait(ctx, time.Duration(start)-c.Now().Sub(started))
		running <- struct{}{}
		wg.Go(func() {
			work(turn)
			<-running
		})
	}
	wg.Wait()
}

func wait(ctx context.Context, d time.Duration) {
	if d <= 0 || ctx.Err() != nil {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// backoff is how long a node is left alone after so many failures. Jitter takes up to a fifth off, so that nodes that
// failed together are not asked together for ever.
func (c *Collector) backoff(failures int) time.Duration {
	backoff, limit := firstBackoff, cmp.Or(c.MaxBackoff, 5*time.Minute)
	for n := 1; n < failures && backoff < limit; n++ {
		backoff *= 2
	}
	return time.Duration(float64(min(backoff, limit)) * (1 - rand.Float64()/5)) //nolint:gosec // no secret
}

// failedAt is the silence of a node after another attempt.
func (a asked) failedAt(node Node, err error, at time.Time) memory.Silence {
	s := a.Silence
	if s.Node == "" {
		s.Since = at
	}
	s.Node, s.Error = node.Name, quote.Line(err.Error())
	return s
}
