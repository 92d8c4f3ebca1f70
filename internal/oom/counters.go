// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"fmt"
	"math"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// counterLag is how old a reading of the counter may be: cAdvisor reads every 10 to 15 s, and less often on a busy
// node.
const counterLag = 30 * time.Second

// UpdateCounters adds kills of child processes that only the kernel's counter shows, and returns the new ones. A lower
// counter was reset by a kubelet restart and counts from there. A reading of an ended instance adds nothing: the series
// remains for a while, and its last count is the end itself. shown returns the limit in a container's pod status (0:
// none, or unknown); nil: unknown.
func (l *Ledger) UpdateCounters(
	readings []memory.KillCounter, peak, shown func(memory.ContainerRef) memory.Bytes, now time.Time,
) []memory.OOMKill {
	l.begin(now)
	var found []memory.OOMKill
	for _, r := range readings {
		limit, asked := l.limitRead(r.Container, shown, now)
		n := l.count(r)
		n -= l.confirm(r.Container, n)
		if n == 0 {
			continue
		}
		kill := memory.OOMKill{
			Container: r.Container, Kind: memory.OOMChildProcess, Time: r.Time, Limit: limit, Asked: asked,
			Confidence: memory.High,
			Why:        fmt.Sprintf("the kernel's counter rose by %d to %d while the container ran", n, r.Count),
		}
		if peak != nil {
			kill.Peak = peak(r.Container)
		}
		for range min(n, maxHidden) {
			found = append(found, kill)
		}
	}
	return l.record(found, now)
}

// News reports whether a reading can change the ledger. Most cannot, because the counter is zero or unchanged. The
// first one after a raise shows that later kills were at the higher limit.
func (l *Ledger) News(r memory.KillCounter) bool {
	c := l.cursor(r.Container)
	if c != nil && c.unread > 0 {
		return true
	}
	if r.Count <= 0 && (c == nil || c.count == 0) {
		return false
	}
	id := instanceOf(r.ContainerID)
	return c == nil || !c.counter || id == 0 || id != c.counterID || int64(c.count) != r.Count
}

// count returns the rise of the counter, and stores the reading.
func (l *Ledger) count(r memory.KillCounter) int64 {
	c := l.cursor(r.Container)
	if r.Count <= 0 && (c == nil || c.count == 0) {
		return 0
	}
	if c = l.counting(c, r.Container); c == nil {
		l.skip(r.Container)
		return 0
	}
	id, count, at := instanceOf(r.ContainerID), int32(max(min(r.Count, math.MaxInt32), 0)), plausible(r.Time)
	switch {
	case id != 0 && id == c.id, at.Before(c.countedAt), at.Before(c.finished): // ended instances, and old readings
		return 0
	case id != c.counterID, id == 0 && c.counterOf != c.next, count < c.count:
		c.counterID, c.counterOf, c.count = id, c.next, 0
	}
	n := count - c.count
	if n > 0 {
		c.count, c.countedAt = count, at.Truncate(time.Second)
	}
	return int64(n)
}

// counting returns a cursor with space for a counter; nil if the ledger is full.
func (l *Ledger) counting(c *cursor, ref memory.ContainerRef) *cursor {
	if c == nil {
		if !l.know(ref.Container, time.Time{}) {
			return nil
		}
		if c = l.newCursor(ref); c == nil {
			return nil
		}
	}
	if c.counter {
		return c
	}
	if !l.fits(counterCost) {
		return nil
	}
	c.counter = true
	l.bytes += counterCost
	return c
}

// limitRead returns the limit for kills in a reading, which may have preceded a raise: the lowest since the previous
// reading.
func (l *Ledger) limitRead(
	ref memory.ContainerRef, shown func(memory.ContainerRef) memory.Bytes, now time.Time,
) (limit, asked memory.Bytes) {
	limit, asked = l.limitNow(ref, shown)
	c := l.cursor(ref)
	if c == nil || c.unread == 0 {
		return limit, asked
	}
	least := c.unread
	if since := now.Sub(c.raise.seen); since >= counterLag || since < 0 { // the clock went back
		c.unread = 0
	}
	if limit == 0 || least < limit {
		return least, max(limit, asked)
	}
	return limit, asked
}

// limitNow returns the limit of a container. Without a cursor, it is the one in its pod's status.
func (l *Ledger) limitNow(
	ref memory.ContainerRef, shown func(memory.ContainerRef) memory.Bytes,
) (limit, asked memory.Bytes) {
	if limit, asked, known := l.EffectiveLimit(ref); known || shown == nil {
		return limit, asked
	}
	return shown(ref), 0
}

// sameAsCounted reports whether a kill of the main process was already counted from a reading of the kernel's counter
// after the kill. It corrects that entry.
func (l *Ledger) sameAsCounted(kill memory.OOMKill, c *cursor, t Termination) bool {
	if !c.counts(t) || kill.Kind == memory.OOMHeapAbort || c.countedAt.Before(t.Finished.Truncate(time.Second)) {
		return false
	}
	kills := l.of(kill.Container.Container).Kills
	for i := len(kills) - 1; i >= 0; i-- {
		k := &kills[i]
		if k.Kind != memory.OOMChildProcess || k.Container.UID != kill.Container.UID {
			continue
		}
		kill.Seen, kill.Own = k.Seen, k.Own
		*k = kill
		return true
	}
	return true
}
