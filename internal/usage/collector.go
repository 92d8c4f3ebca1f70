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
	nodeTimeout  = 30 * time.Second // of the read of one node, over all sources
	firstBackoff = 15 * time.Second // after a source failed once for a node
)

// Collector reads many nodes concurrently, and records nodes that do not respond. It keeps state between cycles, so use
// one Collector for the life of the process. A cycle must end before the next one starts.
type Collector struct {
	// Sources are tried in order for each node until one responds, even without samples. After a failure for a node, a
	// source has a backoff, so that a firewall that drops connections to kubelets does not cost a timeout per node and
	// cycle.
	Sources     []Source
	Now         func() time.Time
	Concurrency int           // number of nodes read concurrently; 0: 16
	Spread      time.Duration // the reads of one cycle start over this period, to avoid bursts
	MaxBackoff  time.Duration // longest backoff of a source for a node, which doubles with each failure; 0: 5m

	states map[string]*nodeState // by node name
}

// nodeState is the state of a node between cycles. While the node responds, only LastResponse of its Silence is set.
type nodeState struct {
	memory.Silence
	sources []attempts // by index of Collector.Sources
}

// attempts describes the failures of one source for a node since it last responded.
type attempts struct {
	failures int
	err      error     // of the last attempt
	nextTry  time.Time // end of the backoff
}

// Name returns "kubelet", or "kubelet or prometheus".
func (c *Collector) Name() string {
	var names []string
	for _, s := range c.Sources {
		names = append(names, s.Name())
	}
	return strings.Join(names, " or ")
}

// Each reads all nodes and passes each reading to take, in no particular order; calls of take do not overlap. It
// returns the nodes whose usage is unknown, in the order of nodes. A node that was skipped because of a backoff has the
// error of its last attempt. When ctx ends, the remaining nodes are returned too, but get no backoff.
func (c *Collector) Each(ctx context.Context, nodes []Node, take func(Node, Reading)) []memory.Silence {
	known := make(map[string]*nodeState, len(nodes)) // without deleted nodes
	silent := make([]memory.Silence, len(nodes))
	due := make([]int, 0, len(nodes))
	started := c.Now()
	for i, n := range nodes {
		state := c.states[n.Name]
		if state == nil {
			state = &nodeState{sources: make([]attempts, len(c.Sources))}
		}
		known[n.Name] = state
		if slices.ContainsFunc(state.sources, func(a attempts) bool { return !started.Before(a.nextTry) }) {
			due = append(due, i)
		} else {
			silent[i] = state.Silence
		}
	}
	c.states = known
	// The order changes each cycle, so that a slow node does not always delay the same others.
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] }) //nolint:gosec // no secret

	var mu sync.Mutex
	c.parallel(ctx, len(due), func(turn int) {
		i, at := due[turn], c.Now()
		state := known[nodes[i].Name]
		r, err := c.read(ctx, nodes[i], state)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			state.Silence = memory.Silence{LastResponse: c.Now()}
			take(nodes[i], r)
			return
		}
		silent[i] = state.failedAt(nodes[i], err, at)
		if ctx.Err() == nil && nodes[i].Missing == nil { // otherwise not the node's fault
			state.Silence = silent[i]
		}
	})
	return slices.DeleteFunc(silent, func(s memory.Silence) bool { return s.Node == "" })
}

// read tries the sources of a node in order, except those in backoff, until one responds.
func (c *Collector) read(ctx context.Context, node Node, state *nodeState) (Reading, error) {
	if err := cmp.Or(node.Missing, ctx.Err()); err != nil {
		return Reading{}, err
	}
	within, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	var why []string
	for i, source := range c.Sources {
		a := &state.sources[i]
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
		return Reading{}, state.sources[0].err
	}
	return Reading{}, errors.New(strings.Join(why, "; "))
}

// parallel runs work(0) to work(n-1), at most Concurrency of them concurrently. It divides Spread into n slots, and
// starts each at a random time in its slot.
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

// backoff returns the backoff after a number of failures. It subtracts up to a fifth at random, so that nodes that
// failed together are not retried together.
func (c *Collector) backoff(failures int) time.Duration {
	backoff, limit := firstBackoff, cmp.Or(c.MaxBackoff, 5*time.Minute)
	for n := 1; n < failures && backoff < limit; n++ {
		backoff *= 2
	}
	return time.Duration(float64(min(backoff, limit)) * (1 - rand.Float64()/5)) //nolint:gosec // no secret
}

// failedAt returns the silence of a node after an attempt at that time failed with err.
func (n *nodeState) failedAt(node Node, err error, at time.Time) memory.Silence {
	s := n.Silence
	if s.Node == "" {
		s.Since = at
	}
	s.Node, s.Error = node.Name, quote.Line(err.Error())
	return s
}
