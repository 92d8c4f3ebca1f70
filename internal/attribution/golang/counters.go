// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package golang

import (
	"context"
	"encoding/binary"
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
	var found []counters
	left := uint64(maxVariables)
	for _, r := range ranges {
		r.Length = min(r.Length, left)
		left -= r.Length
		more, err := search(ctx, m, r, heap)
		if err != nil {
			return counters{}, err
		}
		found = append(found, more...)
	}
	if collected := slices.DeleteFunc(slices.Clone(found), counters.uncollected); len(collected) == 1 {
		return collected[0], nil
	}
	switch len(found) {
	case 0:
		return counters{}, ErrNone
	case 1:
		return found[0], nil
	}
	return counters{}, fmt.Errorf("%w: %d do", ErrAmbiguous, len(found))
}

// search reads one range, page by page, and keeps the last words of a page for counters that continue in the next.
func search(ctx context.Context, m procmem.Memory, r procmem.Run, heap uint64) ([]counters, error) {
	runs, err := m.Resident(r.Start, r.End())
	if err != nil {
		return nil, err
	}
	const before = 8 * (liveBefore + counterWords - 1)
	var found []counters
	var buf [before + procmem.PageSize]byte
	defer clear(buf[:])
	for _, run := range runs {
		held := 0 // bytes of the page before
		for at := run.Start; at < run.End(); at += procmem.PageSize {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if n, err := m.ReadAt(buf[held:held+procmem.PageSize], at); err != nil || n < procmem.PageSize {
				held = 0
				continue
			}
			found = appendFitting(found, buf[:held+procmem.PageSize], held, at-uint64(held), heap)
			copy(buf[:], buf[held+procmem.PageSize-before:held+procmem.PageSize])
			held = before
		}
	}
	return found, nil
}

// appendFitting searches for counters that end after the first seen bytes, which were searched before. b is the memory
// at an address.
func appendFitting(found []counters, b []byte, seen int, address, heap uint64) []counters {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
	for i := max(seen-8*(counterWords-1), 0); i+8*counterWords <= len(b); i += 8 {
		c := counters{
			inUse: word(i), released: word(i + 8), free: word(i + 16), totalAlloc: word(i + 24), totalFree: word(i + 32),
			ready: word(i + 40), at: address + uint64(i),
		}
		if !c.fit(heap) || len(found) >= maxFound {
			continue
		}
		if i >= 8*liveBefore {
			c.live = c.alive(word(i-8*markedBefore), word(i-8*liveBefore))
		}
		if i >= 8*triggeredBefore && c.live > 0 {
			c.fresh = c.allocated(word(i-8*triggeredBefore), word(i-8*liveBefore))
		}
		found = append(found, c)
	}
	return found
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
	const before = 8 * triggeredBefore
	var buf [before + 8*counterWords]byte
	defer clear(buf[:])
	var fresh uint64 // of the collection that runs; the last reading before its end may miss a little
	found := c.live  // by the last one
	for i := range readings {
		select {
		case <-ctx.Done():
			return least
		case <-every.C:
		}
		if n, err := m.ReadAt(buf[:], c.at-before); err != nil || n < len(buf) {
			return least
		}
		for _, again := range appendFitting(nil, buf[:], before, c.at-before, heap) {
			if again.at != c.at {
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
