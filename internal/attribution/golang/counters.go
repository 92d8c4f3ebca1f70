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

// counters has counters of gcControllerState, in their order in Go 1.19 to 1.26.
type counters struct {
	inUse, released, free, totalAlloc, totalFree, ready uint64

	live  uint64 // heapMarked, the live heap of the last collection; 0: unknown
	fresh uint64 // allocated since the running collection began; 0: none runs
	at    uint64 // address of the first counter
	spent spent  // processor time; zero: not found
}

// Errors of [Reader.Claim] if the counters are not certain.
var (
	ErrNone      = errors.New("the counters of Go's collector were not found")
	ErrAmbiguous = errors.New("several places match the counters of Go's collector")
)

const (
	counterWords = 6
	// Distances in words before the counters, in Go 1.20 to 1.26: of heapMarked, the live heap of the last collection; of
	// heapLive, heapMarked plus later allocations; and of triggered, heapLive when the collection began, or all ones.
	markedBefore, liveBefore, triggeredBefore = 15, 21, 23

	spanSize     = 8 << 10  // size of a page of Go; spans of the heap are multiples
	maxVariables = 16 << 20 // bytes of variables that are searched; kube-apiserver has 3 MiB
	maxFound     = 8        // matching places that are compared
	maxOther     = 4 << 30  // bytes that the runtime maps besides the heap: stacks of threads, tables, profiles
)

// fit reports whether the words can be the counters of a heap whose mappings have heap bytes. The mappings also hold
// stacks of goroutines, which the first three counters omit: their sum was never below an eighth of heap.
func (c *counters) fit(heap uint64) bool {
	if c.inUse == 0 || c.inUse%spanSize != 0 || c.released%procmem.PageSize != 0 || c.free%procmem.PageSize != 0 {
		return false
	}
	slack := heap / 2 // for changes between reads
	if most := heap + slack; c.inUse > most || c.released > most || c.free > most {
		return false
	}
	sum, ready := c.inUse+c.released+c.free, c.inUse+c.free
	objects := c.totalAlloc - c.totalFree
	// In a small heap, slack alone would allow any ready: memfit's manager has six powers of two that then matched.
	return sum <= heap+slack && sum >= heap/8 && c.totalAlloc > 0 && c.totalAlloc >= c.totalFree &&
		objects <= c.inUse && c.ready+min(slack/4, ready/2) >= ready && c.ready <= ready+heap+maxOther
}

// find searches ranges of variables for the counters. Of several matching places it returns the only one with a
// plausible heapMarked: in a Go 1.26 program, sizes of other memory resembled the counters.
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

// places collects matching places.
type places struct {
	counters []counters
	spent    []spent
}

// one returns the counters if the match is certain.
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
	return counters{}, fmt.Errorf("%w: %d", ErrAmbiguous, len(p.counters))
}

// search adds the matching places in one range.
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
			for i := range around { // unreadable words are 0
				around[i], _ = window.Word(at + 8*uint64(i) - 8*triggeredBefore)
			}
			if c, ok := around.counters(at, heap); ok {
				p.counters = append(p.counters, c)
			}
		}
	}
	return nil
}

// surroundings are the counters and the related words before them.
type surroundings [triggeredBefore + counterWords]uint64

// counters parses the words. ok is true if they fit a heap of this size. at is the address of the first counter.
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

// uncollected reports whether no plausible heapMarked precedes the counters.
func (c counters) uncollected() bool { return c.live == 0 }

// alive returns marked, the live heap of the last collection, or 0 if the words are implausible: live is at least
// marked, and at most the memory in use and an eighth, for allocations between the two reads.
func (c *counters) alive(marked, live uint64) uint64 {
	if marked == 0 || marked > live || live > c.inUse+c.inUse/8 || live > c.totalAlloc {
		return 0
	}
	return marked
}

// allocated returns the memory allocated since the running collection began, or 0 if the words are implausible.
func (c *counters) allocated(triggered, live uint64) uint64 {
	if triggered < c.live || triggered > live {
		return 0
	}
	return live - triggered
}

// leastAlive watches collections for a second, and returns the smallest live heap at the start of one. A collection
// counts allocations during its run as alive, which is much if collections follow each other without a pause: 60
// collections of a service with 49 MiB counted 50 to 60 MiB. A heap of twice the live memory is collected too rarely
// for that.
func (c *counters) leastAlive(ctx context.Context, m procmem.Memory, heap uint64, now func() time.Time) uint64 {
	least := c.live
	deadline, bounded := ctx.Deadline()
	if now == nil || least == 0 || c.inUse >= 2*least || bounded && deadline.Sub(now()) < 2*watchTime {
		return least
	}
	every := time.NewTicker(watchTime / readings)
	defer every.Stop()
	probe := procmem.NewProbe(m)
	var around surroundings
	var fresh uint64 // allocated during the running collection, as of the last reading
	found := c.live  // live heap of the last completed collection
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
			return least // few allocations: no collection will start soon
		}
	}
	return least
}

const (
	watchTime = time.Second // enough for several collections that follow each other without a pause
	readings  = 100         // in watchTime; each takes a microsecond
)

// spent has processor time from the program's start to the last collection: of the collector, and of the process.
type spent struct {
	collector, busy time.Duration
	collections     uint64
}

const (
	// Words of cpuStats in Go 1.21 to 1.26, in nanoseconds: four parts of the collector's time and their sum, two of the
	// scavenger and their sum, idle, the program, and the total. The total lacks the pauses of a running collection.
	timeWords = 11
	// The words before cpuStats begin with three numbers of 32 bits: how many collections there were, and the processors
	// of the last one in a pause and outside of it. Other words precede the copy in runtime/metrics.
	wordsBefore = 10

	maxTime       = 1 << 60 // 36 years
	maxProcessors = 1 << 16
)

// spentBefore reads cpuStats, if its words are consistent. end is the address of its last word, total.
func spentBefore(window *procmem.Window, end, total uint64) (s spent, ok bool) {
	if own, err := window.Word(end - 8); err != nil || own == 0 || own > total || total > maxTime {
		return spent{}, false
	}
	var w [wordsBefore + timeWords]uint64
	for i := range w { // unreadable words are 0
		w[i], _ = window.Word(end - 8*uint64(len(w)-1-i))
	}
	t := w[wordsBefore:]
	for _, word := range t {
		if word > maxTime {
			return spent{}, false
		}
	}
	collector, scavenger, idle := t[4], t[7], t[8]
	sum := collector + scavenger + idle + t[9]
	if collector == 0 || collector != t[0]+t[1]+t[2]+t[3] || scavenger != t[5]+t[6] ||
		sum < total || sum-total > total/16 || idle+collector > total {
		return spent{}, false
	}
	collections, paused, processors := w[0]&(1<<32-1), w[0]>>32, w[1]
	if collections == 0 || paused == 0 || paused > processors || processors > maxProcessors {
		return spent{}, false
	}
	//nolint:gosec // at most maxTime
	return spent{collector: time.Duration(collector), busy: time.Duration(total - idle), collections: collections}, true
}
