// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Fallback asks a, and b for the nodes where a does not answer.
//
//   - A reading of a is an answer, also an empty one: b is not asked for a second opinion, and the two are never mixed.
//   - When b had to answer, the reading's Source is b's.
//   - When neither answers the error has both, a's first. When ctx ends during a's attempt, b is not asked.
//   - A node where a fails again and again is asked through a less and less often: after n failures in a row the next
//     2^(n-1)-1 reads (at most 31) go straight to b. So a cluster whose firewall drops connections to kubelets does not
//     wait for a timeout per node and cycle.
//
// a must give up before ctx does, or there is no time left for b - until it has failed twice and is left out.
func Fallback(a, b Source) Source {
	return &fallback{a: a, b: b, failed: map[string]*refusal{}}
}

// maxSkips bounds how many reads in a row leave a out; at one read a minute a kubelet that came back is noticed within
// half an hour.
const maxSkips = 31

// maxRefusals bounds what is remembered about nodes, most of which may be long gone; beyond it memory starts afresh.
const maxRefusals = 20_000

type fallback struct {
	a, b   Source
	mu     sync.Mutex
	failed map[string]*refusal // by node name
}

// refusal is what is known about a node where a did not answer.
type refusal struct {
	err   error
	skips int // reads in a row to leave a out after the last failure
	left  int // of these, still to come
}

func (f *fallback) Name() string { return f.a.Name() + " or " + f.b.Name() }

func (f *fallback) Read(ctx context.Context, node Node) (Reading, error) {
	aErr := f.skip(node.Name)
	if aErr == nil {
		var r Reading
		if r, aErr = f.a.Read(ctx, node); aErr == nil {
			f.forget(node.Name)
			return r, nil
		}
		if !errors.Is(ctx.Err(), context.Canceled) { // else it was the caller who gave up, not a
			f.remember(node.Name, aErr)
		}
		if ctx.Err() != nil {
			return Reading{}, aErr
		}
	}
	r, err := f.b.Read(ctx, node)
	if err != nil {
		return Reading{}, fmt.Errorf("%s: %w; %s: %w", f.a.Name(), aErr, f.b.Name(), err)
	}
	return r, nil
}

// skip returns the last error of a if it is to be left out this time.
func (f *fallback) skip(node string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.failed[node]
	if r == nil || r.left == 0 {
		return nil
	}
	r.left--
	return r.err
}

func (f *fallback) remember(node string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.failed[node]
	if r == nil {
		if len(f.failed) >= maxRefusals {
			clear(f.failed)
		}
		f.failed[node] = &refusal{err: err}
		return
	}
	r.err, r.skips = err, min(2*r.skips+1, maxSkips)
	r.left = r.skips
}

func (f *fallback) forget(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.failed, node)
}
