// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
)

const (
	// nodeTimeout is for one node, over all sources.
	nodeTimeout = 30 * time.Second
	// firstBackoff is how long a source that failed once for a node is left alone.
	firstBackoff = 15 * time.Second
)

// Collector reads many nodes concurrently and remembers what does not answer. Use one for the life of the process, by
// pointer; a cycle must end before the next one starts.
type Collector struct {
	// Sources are asked for each node, the next where one does not answer: an answer without samples is an answer, and two
	// are never mixed. One that fails for a node is left alone for a while, so that a cluster whose firewall drops
	// connections to kubelets does not wait for a timeout per node and cycle.
	Sources []Source
	// Now is the clock. Required.
	Now func() time.Time
	// Concurrency is how many nodes are read concurrently. Default 16.
	Concurrency int
	// Spread is the time over which the reads of one cycle are started, so that neither the network nor memfit sees a
	// burst. Default 0: immediately. Half of the cycle is a good value.
	Spread time.Duration
	// MaxBackoff is how long a source is left alone for a node at most: twice as long after each failure. Default 5m.
	MaxBackoff time.Duration

	asked map[string]*asked // by node name
}

// asked is what is known of a node. While it answers, all of its silence is zero but for Answered.
type asked struct {
	memory.Silence
	sources []attempts
}

// attempts are those at one source since it answered for the node. The last had err, and the next is at nextTry at the
// earliest.
type attempts struct {
	failures int
	err      error
	nextTry  time.Time
}

// Name is "kubelet", or "kubelet or prometheus".
func (c *Collector) Name() string {
	var names []string
	for _, s := range c.Sources {
		names = append(names, s.Name())
	}
	return strings.Join(names, " or ")
}

// Each reads all nodes and hands over each reading as it comes, in no particular order; calls of take do not overlap.
// It returns when all nodes have answered, failed or been passed over, with those of which usage is unknown now, in the
// order of nodes; nothing about their containers may be concluded from the silence. One that is left alone has the
// answer of its last attempt. When ctx ends, nodes that were not asked yet are silent too, but that is not held against
// them.
func (c *Collector) Each(ctx context.Context, nodes []Node, take func(Node, Reading)) []memory.Silence {
	known := make(map[string]*asked, len(nodes)) // what is known of other nodes, which no longer exist, goes
	silent := make([]memory.Silence, len(nodes))
	due := make([]int, 0, len(nodes))
	started := c.Now()
	for i, n := range nodes {
		of := c.asked[n.Name]
		if of == nil {
			of = &asked{sources: make([]attempts, len(c.Sources))}
		}
		known[n.Name] = of
		if slices.ContainsFunc(of.sources, func(a attempts) bool { return !started.Before(a.nextTry) }) {
			due = append(due, i)
		} else {
			silent[i] = of.Silence
		}
	}
	c.asked = known
	// The order changes from cycle to cycle, so that a slow node delays others only now and then.
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] }) //nolint:gosec // no secret

	var mu sync.Mutex
	c.parallel(ctx, len(due), func(turn int) {
		i, at := due[turn], c.Now()
		of := known[nodes[i].Name]
		r, err := c.read(ctx, nodes[i], of)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			of.Silence = memory.Silence{Answered: c.Now()}
			take(nodes[i], r)
			return
		}
		silent[i] = of.failedAt(nodes[i], err, at)
		if ctx.Err() == nil && nodes[i].Missing == nil { // else it is not the node's fault
			of.Silence = silent[i]
		}
	})
	return slices.DeleteFunc(silent, func(s memory.Silence) bool { return s.Node == "" })
}

// read asks the sources that are not left alone, until one answers.
func (c *Collector) read(ctx context.Context, node Node, of *asked) (Reading, error) {
	if err := cmp.Or(node.Missing, ctx.Err()); err != nil {
		return Reading{}, err
	}
	within, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	var why []string
	for i, source := range c.Sources {
		a := &of.sources[i]
		if within.Err() == nil && !c.Now().Before(a.nextTry) {
			r, err := source.Read(within, node)
			if err == nil {
				r, err = plausible(r, c.Now())
			}
			switch {
			case err == nil:
				*a = attempts{}
				return r, nil
			case ctx.Err() != nil:
				return Reading{}, err
			}
			a.failures++
			a.err, a.nextTry = err, c.Now().Add(c.backoff(a.failures))
		}
		if a.err != nil {
			why = append(why, source.Name()+": "+a.err.Error())
		}
	}
	if len(c.Sources) == 1 {
		return Reading{}, of.sources[0].err
	}
	return Reading{}, errors.New(strings.Join(why, "; "))
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

// backoff is how long a source is left alone after so many failures. Jitter takes up to a fifth off, so that nodes that
// failed together are not asked together for ever.
func (c *Collector) backoff(failures int) time.Duration {
	backoff, limit := firstBackoff, cmp.Or(c.MaxBackoff, 5*time.Minute)
	for n := 1; n < failures && backoff < limit; n++ {
		backoff *= 2
	}
	return time.Duration(float64(min(backoff, limit)) * (1 - rand.Float64()/5)) //nolint:gosec // no secret
}

// failedAt is the silence of a node after another attempt.
func (a *asked) failedAt(node Node, err error, at time.Time) memory.Silence {
	s := a.Silence
	if s.Node == "" {
		s.Since = at
	}
	s.Node, s.Error = node.Name, quote.Line(err.Error())
	return s
}
