// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"fmt"
	"math"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// counterLag bounds the age of the counter in a reading: cAdvisor reads it every 10 to 15 s, and less often on a busy
// node.
const counterLag = 30 * time.Second

// UpdateCounters adds readings of the kernel's counter, and returns the new kills: those of child processes, which no
// status shows. A kubelet restart resets the counter. Readings of ended instances, which the kubelet reports for a
// while, are ignored. peak returns the highest demand of a container (0: none), and shown the limit in its status (0:
// none, or unknown); both may be nil.
func (l *Ledger) UpdateCounters(
	readings []memory.KillCounter, peak, shown func(memory.ContainerRef) memory.Bytes, now time.Time,
) []memory.OOMKill {
	l.begin(now)
	var found []memory.OOMKill
	for _, r := range readings {
		limit, asked := l.limitAtReading(r.Container, shown, now)
		n := l.counterRise(r)
		n -= l.confirmAgentKills(r.Container, n)
		if n == 0 {
			continue
		}
		kill := memory.OOMKill{
			Container: r.Container, Kind: memory.OOMChildProcess, Time: r.Time, Limit: limit, Requested: asked,
			Confidence: memory.High,
			Why:        fmt.Sprintf("the kernel's count of OOM kills rose by %d, to %d, while the container ran", n, r.Count),
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

// Relevant reports whether a reading can change the ledger. Most readings cannot, because the counter is zero or
// unchanged. The first reading after a raise always can: later kills are then at the higher limit.
func (l *Ledger) Relevant(r memory.KillCounter) bool {
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

// counterRise stores a reading, and returns the rise of the counter since the previous one.
func (l *Ledger) counterRise(r memory.KillCounter) int64 {
	c := l.cursor(r.Container)
	if r.Count <= 0 && (c == nil || c.count == 0) {
		return 0
	}
	if c = l.withCounter(c, r.Container); c == nil {
		l.markNotFollowed(r.Container)
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

// withCounter returns the container's cursor with space for a counter; nil if the ledger is full. c is its cursor; nil:
// none.
func (l *Ledger) withCounter(c *cursor, ref memory.ContainerRef) *cursor {
	if c == nil {
		if !l.ensureName(ref.Container, time.Time{}) {
			return nil
		}
		if c = l.newCursor(ref); c == nil {
			return nil
		}
	}
	if c.counter {
		return c
	}
	if !l.ensureSpace(counterCost) {
		return nil
	}
	c.counter = true
	l.bytes += counterCost
	return c
}

// limitAtReading returns the limit for kills in a reading. They may have preceded a raise, so it is the lowest limit
// since the previous reading.
func (l *Ledger) limitAtReading(
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

// limitNow returns the current limit of a container: the ledger's, otherwise the one in its pod's status.
func (l *Ledger) limitNow(
	ref memory.ContainerRef, shown func(memory.ContainerRef) memory.Bytes,
) (limit, asked memory.Bytes) {
	if limit, asked, known := l.EffectiveLimit(ref); known || shown == nil {
		return limit, asked
	}
	return shown(ref), 0
}

// sameAsCounted reports whether a kill of the main process was already counted from a reading of the kernel's counter,
// as a child's. If so, it corrects the recorded kill.
func (l *Ledger) sameAsCounted(kill memory.OOMKill, c *cursor, t Termination) bool {
	if !c.counterShows(t) || kill.Kind == memory.OOMHeapAbort || c.countedAt.Before(t.Finished.Truncate(time.Second)) {
		return false
	}
	kills := l.byName(kill.Container.Container).Kills
	for i := len(kills) - 1; i >= 0; i-- {
		k := &kills[i]
		if k.Kind != memory.OOMChildProcess || k.Container.UID != kill.Container.UID {
			continue
		}
		kill.Seen, kill.LimitWithoutLoan = k.Seen, k.LimitWithoutLoan
		*k = kill
		return true
	}
	return true
}
