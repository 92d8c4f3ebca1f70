// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package golang

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/procmem"
)

// counters are those of gcControllerState, in the order in which Go 1.19 to 1.26 have them. live is heapMarked, what
// the last collection found alive; 0: it is not known. fresh is what was allocated since the running collection began;
// 0: none runs.
type counters struct {
	inUse, released, free, totalAlloc, totalFree, ready uint64
	live, fresh                                         uint64
	at                                                  uint64 // address of the first
	spent                                               spent  // zero: not found
}

// Errors for a missing estimate.
var (
	ErrNone      = errors.New("the counters of Go's collector were not found")
	ErrAmbiguous = errors.New("more than one place looks like the counters of Go's collector")
)

const (
	counterWords = 6
	// Words before the counters, in Go 1.20 to 1.26: heapMarked, what the last collection found alive; heapLive, the same
	// with what was allocated since; and triggered, what heapLive was when the collection began that runs, or all ones.
	markedBefore, liveBefore, triggeredBefore = 15, 21, 23

	spanSize = 8 << 10 // spans of the heap are multiples of a page of Go
	// maxVariables is how much of the variables is searched: those of kube-apiserver are 3 MiB.
	maxVariables = 16 << 20
	// maxFound is how many places that fit are compared.
	maxFound = 8
)

// fit reports whether six words can be the counters of a heap whose mappings had this size a moment ago. Stacks of
// goroutines come out of the heap, too, and are in none of the first three; less than an eighth was not seen. The
// counters change one after the other while the heap grows, which is what the slack is for.
func (c *counters) fit(heap uint64) bool {
	if c.inUse == 0 || c.inUse%spanSize != 0 || c.released%procmem.PageSize != 0 || c.free%procmem.PageSize != 0 {
		return false
	}
	slack := heap / 2
	if most := heap + slack; c.inUse > most || c.released > most || c.free > most {
		return false
	}
	sum, ready := c.inUse+c.released+c.free, c.inUse+c.free
	objects := c.totalAlloc - c.totalFree
	// Of a heap that is small beside its mappings, the slack alone would let anything pass: six powers of two among the
	// constants of memfit's manager looked like a heap of 160 KiB with 8 mapped bytes.
	return sum <= heap+slack && sum >= heap/8 && c.totalAlloc > 0 && c.totalAlloc >= c.totalFree &&
		objects <= c.inUse && c.ready+min(slack/4, ready/2) >= ready && c.ready <= ready+heap+maxOther
}

// maxOther is what the runtime maps besides the heap: stacks of threads, tables, profiles.
const maxOther = 4 << 30

// find searches ranges of variables for the counters. Of several places that fit, the one counts that follows the
// result of a collection: in a program of Go 1.26, sizes of other parts of its memory resembled a heap.
func find(ctx context.Context, m procmem.Memory, ranges []procmem.Run, heap uint64) (counters, error) {
	var found places
	left := uint64(maxVariables)
	for _, r := range ranges {
		r.Length = min(r.Length, left)
		left -= r.Length
		if err := found.search(ctx, m, r, heap); err != nil {
			return counters{}, err
		}
	}
	c, err := found.one()
	if len(found.spent) == 1 {
		c.spent = found.spent[0]
	}
	return c, err
}

// places are those that fit.
type places struct {
	counters []counters
	spent    []spent
}

// one returns the counters.
func (p *places) one() (counters, error) {
	if collected := slices.DeleteFunc(slices.Clone(p.counters), counters.uncollected); len(collected) == 1 {
		return collected[0], nil
	}
	switch len(p.counters) {
	case 0:
		return counters{}, ErrNone
	case 1:
		return p.counters[0], nil
	}
	return counters{}, fmt.Errorf("%w: %d do", ErrAmbiguous, len(p.counters))
}

// search adds the places in one range.
func (p *places) search(ctx context.Context, m procmem.Memory, r procmem.Run, heap uint64) error {
	window, err := procmem.NewWindow(m, r.Start, r.End())
	if err != nil {
		return err
	}
	defer window.Close()
	for _, run := range window.Runs() {
		for at := run.Start; at < run.End() && len(p.counters) < maxFound; at += 8 {
			if at%procmem.PageSize == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			word, err := window.Word(at)
			if err != nil {
				at |= procmem.PageSize - 8 // the next page
				continue
			}
			if word == 0 {
				continue
			}
			if s, ok := spentBefore(window, at, word); ok && len(p.spent) < maxFound {
				p.spent = append(p.spent, s)
			}
			if word%spanSize != 0 {
				continue
			}
			var around surroundings
			for i := range around { // those that cannot be read are 0
				around[i], _ = window.Word(at + 8*uint64(i) - 8*triggeredBefore)
			}
			if c, ok := around.counters(at, heap); ok {
				p.counters = append(p.counters, c)
			}
		}
	}
	return nil
}

// surroundings are the counters and the words before them that belong to them.
type surroundings [triggeredBefore + counterWords]uint64

// counters are those in the last words, if they fit; at is their address.
func (s *surroundings) counters(at, heap uint64) (c counters, ok bool) {
	own := s[triggeredBefore:]
	c = counters{
		inUse: own[0], released: own[1], free: own[2], totalAlloc: own[3], totalFree: own[4], ready: own[5], at: at,
	}
	triggered, alive, marked := s[0], s[triggeredBefore-liveBefore], s[triggeredBefore-markedBefore]
	if c.live = c.alive(marked, alive); c.live > 0 {
		c.fresh = c.allocated(triggered, alive)
	}
	return c, c.fit(heap)
}

// uncollected: no result of a collection precedes them.
func (c counters) uncollected() bool { return c.live == 0 }

// alive is what the last collection marked, if these words can be that and what is alive by now: the latter is never
// less, and no more than what is in use, but for what was allocated between the two reads.
func (c *counters) alive(marked, live uint64) uint64 {
	if marked == 0 || marked > live || live > c.inUse+c.inUse/8 || live > c.totalAlloc {
		return 0
	}
	return marked
}

// allocated is what was allocated since a collection began, if these words can be what there was then and by now.
func (c *counters) allocated(triggered, live uint64) uint64 {
	if triggered < c.live || triggered > live {
		return 0
	}
	return live - triggered
}

// leastAlive watches the collections of a moment, and returns the least of what was alive when they began. A
// collection counts all as alive that is allocated while it runs. Where collections follow each other without a pause,
// that is much, and random: of a service that kept 49 MiB, 60 in a row found 50 to 60 MiB, each 47 to 51 and what was
// allocated meanwhile. A heap that is twice what is alive is collected too rarely for that.
func (c *counters) leastAlive(ctx context.Context, m procmem.Memory, heap uint64, now func() time.Time) uint64 {
	least := c.live
	deadline, bounded := ctx.Deadline()
	if now == nil || least == 0 || c.inUse >= 2*least || bounded && deadline.Sub(now()) < 2*moment {
		return least
	}
	every := time.NewTicker(moment / readings)
	defer every.Stop()
	probe := procmem.NewProbe(m)
	var around surroundings
	var fresh uint64 // of the collection that runs; the last reading before its end may miss a little
	found := c.live  // by the last one
	for i := range readings {
		select {
		case <-ctx.Done():
			return least
		case <-every.C:
		}
		if probe.Words(c.at-8*triggeredBefore, around[:]) != nil {
			return least
		}
		again, ok := around.counters(c.at, heap)
		if !ok {
			continue
		}
		if again.live > 0 && again.live != found {
			if fresh < again.live {
				least = min(least, again.live-fresh)
			}
			found, fresh = again.live, 0
		}
		fresh = max(fresh, again.fresh)
		if i == readings/5 && again.totalAlloc-c.totalAlloc < c.live/64 {
			return least // it hardly allocates: no collection will come
		}
	}
	return least
}

const (
	// moment is for how long collections are watched: a second has several of those without a pause between them.
	moment = time.Second
	// readings is how often the counters are read meanwhile: what is allocated between the last one and the end of a
	// collection is missed. One costs a microsecond.
	readings = 100
)
