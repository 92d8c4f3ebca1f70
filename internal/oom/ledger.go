// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// Bounds of a ledger; those in bytes are in bounds.go.
const (
	// KillsKept is the number of kills kept in detail for each container name, see [Thinned]; others live on in the
	// counters.
	KillsKept = 20
	// hiddenAtMost bounds what one observation may add for kills it did not see itself. A crash loop backs off to one
	// restart in five minutes, so a thousand is more than three days without an observation.
	hiddenAtMost = 1000
	// goneFor is how long a deleted pod is remembered, so that a late event about it is not taken for news.
	goneFor = time.Hour
)

// Ledger remembers the OOM kills of one workload, each exactly once, in bounded space. The zero value is empty and
// ready. It marshals to a few bytes per restarted container and continues from there as if nothing had happened. It is
// not safe for concurrent use.
//
// What makes a kill one kill: pod UID, container, and the instance's number and ID. A pod without restarts needs no
// cursor: it is enough that it was born after the ledger.
//
// A pod that lives is never forgotten, because its status would then be counted a second time. When the room for
// cursors is used up, new pods are not followed, and [Ledger.NotFollowed] says how many.
type Ledger struct {
	// since is the first Update: what happened to a pod before it was not seen.
	since time.Time
	// names is what is known of each container name, in all pods.
	names map[string]*named
	pods  map[podKey]*pod
	// bytes is what the cursors may take when they are stored, at most cursorBytes.
	bytes int
	// allExist: no cursor belongs to a pod that is gone, so none can be dropped.
	allExist bool
	// notFollowed are pods that did not fit. It is not stored: after a restart every pod is read again.
	notFollowed map[podKey]struct{}
}

// named is what is known of the containers of one name. It is stored as it is.
type named struct {
	// Limit is the limit with which the container was created in the youngest pod seen, which was born then: not the last
	// one seen, or a rollout would change the ledger, and so its checkpoint, with every observation of an old pod and of a
	// new one.
	Limit memory.Bytes `json:"limit,omitempty"`
	Born  time.Time    `json:"born,omitzero"`
	// Before is the limit with which pods born before Since were created; later ones have Limit, and those born at Since
	// either. Zero: no other was seen.
	Before memory.Bytes `json:"before,omitempty"`
	Since  time.Time    `json:"since,omitzero"`
	// Kills are those kept in detail, oldest first; Dropped counts all others.
	Kills   []memory.OOMKill         `json:"kills,omitempty"`
	Dropped map[memory.OOMKind]int64 `json:"dropped,omitempty"`
	// Stalls are not kills, and counted apart in the same way.
	Stalls        []memory.Stall `json:"stalls,omitempty"`
	DroppedStalls int64          `json:"droppedStalls,omitempty"`
	// cursors is how many there are of the name.
	cursors int
}

type pod struct {
	gone       time.Time // when it was first missing; zero while it lives
	containers []cursor  // by name
}

// cursor is how far one container of one pod has been accounted for.
type cursor struct {
	container string
	next      int32      // the first instance whose end is not accounted for
	id        instanceID // the instance accounted for last
	finished  time.Time
	// limit, and asked where that was not effective, are what instance limitOf was last seen with; limited is false before
	// that.
	limited bool
	limit   memory.Bytes
	asked   memory.Bytes
	limitOf int32
	// raise is the last one, and unread the lowest limit that was replaced since the kernel's counter was read last; 0:
	// none was. They are forgotten with memfit: they matter for seconds.
	raise  raise
	unread memory.Bytes
	// count is the kernel's counter for instance counterID (counterOf where the source names no IDs), at the reading that
	// last raised it; counter is false before the first reading.
	counter   bool
	count     int32
	counterID instanceID
	counterOf int32
	countedAt time.Time
}

// Update adds what the observations show and returns the kills that are new, oldest first. Observations may come in
// any order, twice, late, or after some were missed. peak returns the highest demand seen in a container instance (0:
// none); nil means that it is unknown.
func (l *Ledger) Update(
	obs []Observation, peak func(memory.ContainerRef) memory.Bytes, now time.Time,
) []memory.OOMKill {
	l.begin(now)
	if peak == nil {
		peak = func(memory.ContainerRef) memory.Bytes { return 0 }
	}
	podPeaks, added := map[types.UID]memory.Bytes{}, map[memory.ContainerRef]bool{}
	for _, o := range obs {
		if o.PodLimit != 0 && !added[o.Container] {
			added[o.Container] = true
			podPeaks[o.Container.UID] = podPeaks[o.Container.UID].Plus(peak(o.Container))
		}
	}
	var found []memory.OOMKill
	inPod := map[types.UID][]memory.OOMKill{}
	for _, doubtful := range []bool{false, true} { // what is judged by its neighbors comes after them
		for _, o := range obs {
			if uid := o.Container.UID; o.onlyLabeled() == doubtful {
				kills := l.observe(o, peak, podPeaks[uid], inPod[uid], now)
				inPod[uid], found = append(inPod[uid], kills...), append(found, kills...)
			}
		}
	}
	return l.record(found, now)
}

func (l *Ledger) begin(now time.Time) {
	l.make()
	if l.since.IsZero() {
		l.since = now.UTC().Truncate(time.Second)
	}
}

// make turns the zero value into one that can be written to.
func (l *Ledger) make() {
	if l.names == nil {
		l.names, l.pods, l.notFollowed = map[string]*named{}, map[podKey]*pod{}, map[podKey]struct{}{}
	}
}

// of is what is known of a container name, to be read.
func (l *Ledger) of(container string) *named {
	if n := l.names[container]; n != nil {
		return n
	}
	return &named{}
}

// observe accounts for everything one observation shows of one container. others are new kills of its pod, not on file
// yet.
func (l *Ledger) observe(
	o Observation, peak func(memory.ContainerRef) memory.Bytes, podPeak memory.Bytes, others []memory.OOMKill,
	now time.Time,
) []memory.OOMKill {
	born := plausible(o.PodCreated).Truncate(time.Second)
	if !l.know(o.Container.Container, born) {
		if o.Restarts > 0 || len(o.Ended) > 0 {
			l.skip(o.Container)
		}
		return nil
	}
	if n := l.names[o.Container.Container]; !o.Edited && !born.Before(n.Born) && !born.Equal(n.Since) {
		if !n.Born.IsZero() && n.Limit != o.Limit {
			n.Before, n.Since = n.Limit, born
		}
		n.Limit, n.Born = o.Limit, born
	}
	watched := !o.PodCreated.Before(l.since) // born under our eyes: all its restarts happened since
	c := l.cursor(o.Container)
	if c == nil && len(o.Ended) == 0 && o.Restarts == 0 {
		l.quiet(o, watched, peak(o.Container), now)
		return nil
	}
	watched = watched || c != nil
	if c == nil {
		if c = l.newCursor(o.Container); c == nil {
			l.skip(o.Container)
			return nil
		}
		c.recall(l.of(o.Container.Container).Kills, o)
	}
	var found []memory.OOMKill
	for _, t := range o.Ended {
		if c.accounted(t) {
			continue
		}
		kills := l.died(o, t, c, watched, peak(o.Container), podPeak, l.besides(o, t, others))
		found = append(found, when(o, t, now, kills)...)
		l.disprove(o, t, c)
		c.advance(t)
		watched = true
	}
	c.next = max(c.next, o.Restarts, 0) // ends that can no longer be seen are no evidence
	limit, asked := l.proven(o, c, peak(o.Container))
	l.sawRaise(c, o, limit, now)
	l.sawLimit(c, o, limit, asked)
	return found
}

// quiet notes what a pod without restarts needs remembered, which for almost all of them is nothing.
func (l *Ledger) quiet(o Observation, watched bool, peak memory.Bytes, now time.Time) {
	switch {
	case l.hadOther(o):
		limit, asked := l.proven(o, nil, peak)
		if c := l.newCursor(o.Container); c != nil {
			l.sawRaise(c, o, limit, now)
			l.keepLimit(c, limit, asked, notSeen)
			l.sawLimit(c, o, limit, asked)
		}
	case !watched && l.bytes < quietBytes:
		l.newCursor(o.Container)
	}
}

// died returns the kills that one termination is evidence of: its own, and those of instances that ended between two
// observations.
func (l *Ledger) died(
	o Observation, t Termination, c *cursor, watched bool, peak, podPeak memory.Bytes, neighbor bool,
) []memory.OOMKill {
	limit, asked := l.limitOf(o, c, t.Index, peak)
	if c.racedRaise(t, limit) {
		limit, asked = c.raise.from, max(limit, asked)
	}
	d := death{
		Termination: t, class: o.Class, runtime: o.Runtime, heapCap: o.HeapCap, measured: o.Measured, limit: limit,
		podLimit: o.PodLimit,
		peak:     peak, podPeak: podPeak,
		counted: c.counts(t) || l.agentCounted(o.Container, t), neighbor: neighbor,
		debugged: o.debugged(t), nodeShort: o.nodeShort(t),
	}
	if o.stopped(t) {
		d.stopping = o.Stopping
	}
	v := judge(d)
	if v.kind == "" {
		return nil
	}
	if v.kind == memory.OOMMainProcess && d.nodeRanOut() { // no limit was reached
		limit, asked = 0, 0
	}
	kill := memory.OOMKill{
		Container: o.Container, Kind: v.kind, Time: storable(t.Finished), Limit: limit, Asked: asked,
		Proven: o.proves(limit, asked), Peak: peak, Uptime: d.uptime(),
		Confidence: v.confidence, Why: v.why, Debugged: v.kind == memory.OOMPodLimit && d.debugFilled(),
	}
	if l.sameAsAgents(kill) || l.sameAsCounted(kill, c, t) {
		return nil
	}
	hidden := t.Index - c.next
	if hidden <= 0 {
		return []memory.OOMKill{kill}
	}
	if !watched {
		kill.Why += fmt.Sprintf("; restarts before memfit first saw the pod are not counted: %d", hidden)
		return []memory.OOMKill{kill}
	}
	return append(l.hidden(kill, o, t, c), kill)
}

// hidden are the kills between two observations that only restartCount shows: the instances that ended since the last
// one and before the one whose end is visible. They are taken to have died as it did.
func (l *Ledger) hidden(visible memory.OOMKill, o Observation, t Termination, c *cursor) []memory.OOMKill {
	switch visible.Kind {
	case memory.OOMMainProcess, memory.OOMAtStart, memory.OOMPodLimit, memory.OOMHeapAbort:
	default:
		return nil
	}
	first := max(c.next, t.Index-hiddenAtMost)
	var out []memory.OOMKill
	for i := first; i < t.Index; i++ {
		limit, asked := l.limitOf(o, c, i, 0)
		if o.RestartsOnResize && max(limit, asked) != o.Limit {
			continue // the limit changed in between: that instance was restarted to be resized
		}
		kill := visible
		if visible.Limit > 0 {
			kill.Limit, kill.Asked = limit, asked
		}
		kill.Peak, kill.Uptime = 0, 0
		kill.Confidence = visible.Confidence.Lower()
		if !t.Started.IsZero() {
			kill.Time = t.Started // it ended before its successor began
		}
		kill.Why = fmt.Sprintf("restart %d, inferred from restartCount, which rose by %d between two observations; "+
			"restart %d was %s, exit %d",
			i, t.Index-c.next+1, t.Index, reasonText(t.Reason), t.ExitCode)
		out = append(out, kill)
	}
	return out
}

// record files the new kills, drops those that are already on file, and returns the rest, oldest first.
func (l *Ledger) record(found []memory.OOMKill, now time.Time) []memory.OOMKill {
	slices.SortStableFunc(found, byTime)
	changed := map[*named]bool{}
	for i := range found {
		k := &found[i]
		k.Time, k.Seen = storable(k.Time), storable(now)
		k.Uptime = k.Uptime.Truncate(time.Second)
		n := l.names[k.Container.Container]
		if n == nil {
			n = &named{}
			l.names[k.Container.Container] = n
		}
		n.Kills, changed[n] = append(n.Kills, *k), true
	}
	for n := range changed {
		slices.SortStableFunc(n.Kills, byTime)
		all := n.Kills
		n.Kills = Thinned(all)
		n.count(all, 1)
		n.count(n.Kills, -1)
	}
	if len(found) > 0 {
		l.trimDetails()
	}
	return found
}

// count adds to the kills that are not kept in detail.
func (n *named) count(kills []memory.OOMKill, each int64) {
	for i := range kills {
		if n.Dropped == nil {
			n.Dropped = map[memory.OOMKind]int64{}
		}
		n.Dropped[kills[i].Kind] += each
	}
	maps.DeleteFunc(n.Dropped, func(_ memory.OOMKind, count int64) bool { return count == 0 })
}

// Thinned are the kills that are kept in detail of those of one container, oldest first: the last ones, and the first
// at each limit. A crash loop of an hour would otherwise wipe out at which limit it began, and growth that was stopped
// would begin anew.
func Thinned(kills []memory.OOMKill) []memory.OOMKill {
	over := max(len(kills)-KillsKept, 0)
	kept, limits := make([]memory.OOMKill, 0, len(kills)-over), map[memory.Bytes]bool{}
	for i, k := range kills {
		if over > 0 && i < len(kills)-1 && limits[k.Limit] {
			over--
			continue
		}
		limits[k.Limit] = true
		kept = append(kept, k)
	}
	return kept[over:]
}

func byTime(a, b memory.OOMKill) int {
	return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Container.Pod, b.Container.Pod))
}

// Kills are the last kills of a container, oldest first, at most [KillsKept].
func (l *Ledger) Kills(container string) []memory.OOMKill { return slices.Clone(l.of(container).Kills) }

// All are the kills kept in detail of all containers, oldest first.
func (l *Ledger) All() []memory.OOMKill {
	var all []memory.OOMKill
	for _, name := range slices.Sorted(maps.Keys(l.names)) {
		all = append(all, l.names[name].Kills...)
	}
	slices.SortStableFunc(all, byTime)
	return all
}

// Total counts all kills of a container ever seen, also those no longer kept in detail. Suspected ones are not in it.
func (l *Ledger) Total(container string) int64 {
	n := l.of(container)
	total := int64(len(n.Kills)) - l.Count(container, memory.OOMSuspected)
	for _, count := range n.Dropped {
		total += count
	}
	return total
}

// Count counts the kills of one kind.
func (l *Ledger) Count(container string, kind memory.OOMKind) int64 {
	n := l.of(container)
	count := n.Dropped[kind]
	for i := range n.Kills {
		if n.Kills[i].Kind == kind {
			count++
		}
	}
	return count
}

// Totals counts the kills and stalls of all containers as [Ledger.Total] and [Ledger.StallTotal] do.
func (l *Ledger) Totals() (kills, stalls int64) {
	for name := range l.names {
		kills, stalls = kills+l.Total(name), stalls+l.StallTotal(name)
	}
	return kills, stalls
}

// UsedUp notes what the containers of new kills were to have without the loan that they used up; 0: there was none.
func (l *Ledger) UsedUp(now time.Time, own func(*memory.OOMKill) memory.Bytes) {
	for _, n := range l.names {
		for i := range n.Kills {
			if k := &n.Kills[i]; k.Own == 0 && k.Limit > 0 && k.Seen.Equal(storable(now)) {
				k.Own = own(k)
			}
		}
	}
}

// Attribute notes what the containers of kills and stalls ran, as far as the caller knows and it is not known yet.
func (l *Ledger) Attribute(program func(memory.ContainerRef) string) {
	for _, n := range l.names {
		for i := range n.Kills {
			if k := &n.Kills[i]; k.Program == "" {
				k.Program = program(k.Container)
			}
		}
		for i := range n.Stalls {
			if s := &n.Stalls[i]; s.Program == "" {
				s.Program = program(s.Container)
			}
		}
	}
}
