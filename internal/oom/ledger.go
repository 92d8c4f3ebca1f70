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
	// KillsKept is the number of kills kept in detail for each container name, see [Thinned]; others are only counted.
	KillsKept = 20
	// maxHidden bounds the unobserved kills that one observation may add. A crash loop backs off to one restart in
	// five minutes, so a thousand is more than three days without an observation.
	maxHidden = 1000
	// goneFor is how long a deleted pod is kept, so that a late event about it does not count as new.
	goneFor = time.Hour
)

// Ledger records the OOM kills of one workload, each exactly once, in bounded space. The zero value is empty and ready.
// It marshals to a few bytes per restarted container. It is not safe for concurrent use.
//
// Pod UID, container, and the instance's number and ID identify a kill. A pod without restarts that was created after
// the ledger needs no cursor.
//
// An existing pod is never dropped, because its status would be counted again. If the space for cursors is used up, new
// pods are not followed, and [Ledger.NotFollowed] returns their number.
type Ledger struct {
	// since is the time of the first Update; earlier events are unknown.
	since time.Time
	// names has the data of each container name, over all pods.
	names map[string]*named
	pods  map[podKey]*pod
	// bytes is the maximum stored size of the cursors, at most cursorBytes.
	bytes int
	// allExist is true if all cursors are of existing pods, so none can be dropped.
	allExist bool
	// notFollowed are pods that did not fit. Not stored: after a restart every pod is read again.
	notFollowed map[podKey]struct{}
}

// named has the data of the containers of one name, as stored.
type named struct {
	// Limit is the container's limit at the creation of the youngest pod, at Since. The last observed pod's limit would
	// change the ledger, and so its checkpoint, with every observation during a rollout.
	Limit memory.Bytes `json:"limit,omitempty"`
	Born  time.Time    `json:"born,omitzero"`
	// Before is the limit of pods created before Since; later ones have Limit, and those created at Since either. Zero:
	// none.
	Before memory.Bytes `json:"before,omitempty"`
	Since  time.Time    `json:"since,omitzero"`
	// Kills are those kept in detail, oldest first; Dropped counts all others.
	Kills   []memory.OOMKill         `json:"kills,omitempty"`
	Dropped map[memory.OOMKind]int64 `json:"dropped,omitempty"`
	// Stalls are not kills, and counted apart in the same way.
	Stalls        []memory.Stall `json:"stalls,omitempty"`
	DroppedStalls int64          `json:"droppedStalls,omitempty"`
	// cursors is the number of cursors of the name.
	cursors int
}

type pod struct {
	gone       time.Time // when it was first missing; zero while it exists
	containers []cursor  // by name
}

// cursor is the processed position of one container of one pod.
type cursor struct {
	container string
	next      int32      // the first instance with an unprocessed end
	id        instanceID // the last processed instance
	finished  time.Time
	// limit, and asked if it was not effective, are the last observed limits of instance limitOf; limited is false before
	// that.
	limited bool
	limit   memory.Bytes
	asked   memory.Bytes
	limitOf int32
	// raise is the last raise, and unread the lowest limit replaced since the last reading of the kernel's counter; 0:
	// none. They are not stored, because they matter only for seconds.
	raise  raise
	unread memory.Bytes
	// count is the kernel's counter for instance counterID (counterOf without IDs), at the reading that last raised it;
	// counter is false before the first reading.
	counter   bool
	count     int32
	counterID instanceID
	counterOf int32
	countedAt time.Time
}

// Update adds observations and returns the new kills, oldest first. Observations may come in any order, twice, late, or
// with gaps. peak returns the highest demand of a container instance (0: none); nil: unknown.
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
	for _, doubtful := range []bool{false, true} { // those that depend on neighbors come last
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

// make initializes the zero value for writes.
func (l *Ledger) make() {
	if l.names == nil {
		l.names, l.pods, l.notFollowed = map[string]*named{}, map[podKey]*pod{}, map[podKey]struct{}{}
	}
}

// of returns the data of a container name, read-only.
func (l *Ledger) of(container string) *named {
	if n := l.names[container]; n != nil {
		return n
	}
	return &named{}
}

// observe processes one observation of one container. others are new kills of its pod, not recorded yet.
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
	watched := !o.PodCreated.Before(l.since) // created after the ledger: all its restarts are newer
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
	c.next = max(c.next, o.Restarts, 0) // skip ends that are no longer visible
	limit, asked := l.proven(o, c, peak(o.Container))
	l.sawRaise(c, o, limit, now)
	l.sawLimit(c, o, limit, asked)
	return found
}

// quiet stores the data that a pod without restarts needs, for almost all none.
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

// died returns the kills shown by one termination: its own, and of instances that ended between two observations.
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
	atCap := v.kind == memory.OOMHeapAbort && o.CapFor > 0
	if atCap {
		limit, asked = o.CapFor, 0
	}
	kill := memory.OOMKill{
		Container: o.Container, Kind: v.kind, Time: storable(t.Finished), Limit: limit, Asked: asked,
		Proven: atCap || o.proves(limit, asked), Peak: peak, Uptime: d.uptime(),
		Confidence: v.confidence, Why: v.why, Debugged: v.kind == memory.OOMPodLimit && d.debugFilled(),
	}
	if v.kind == memory.OOMMainProcess && d.nodeRanOut() {
		byNode(&kill)
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

// hidden returns the kills between two observations that only restartCount shows, of instances before the one whose end
// is visible. It assumes that they ended like that one.
func (l *Ledger) hidden(visible memory.OOMKill, o Observation, t Termination, c *cursor) []memory.OOMKill {
	switch visible.Kind {
	case memory.OOMMainProcess, memory.OOMAtStart, memory.OOMPodLimit, memory.OOMHeapAbort:
	default:
		return nil
	}
	first := max(c.next, t.Index-maxHidden)
	var out []memory.OOMKill
	for i := first; i < t.Index; i++ {
		limit, asked := l.limitOf(o, c, i, 0)
		if o.RestartsOnResize && max(limit, asked) != o.Limit {
			continue // the limit changed: that instance was restarted for a resize
		}
		kill := visible
		if visible.Kind != memory.OOMHeapAbort || o.CapFor == 0 {
			kill.Limit, kill.Asked = limit, asked
		}
		if visible.Unreached > 0 {
			byNode(&kill)
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

// record records the new kills, drops already recorded ones, and returns the rest, oldest first.
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

// count counts a kill that is not kept in detail.
func (n *named) count(kills []memory.OOMKill, each int64) {
	for i := range kills {
		if n.Dropped == nil {
			n.Dropped = map[memory.OOMKind]int64{}
		}
		n.Dropped[kills[i].Kind] += each
	}
	maps.DeleteFunc(n.Dropped, func(_ memory.OOMKind, count int64) bool { return count == 0 })
}

// Thinned returns the kills to keep in detail of one container, oldest first: the last ones, and the first at each
// limit. Otherwise a crash loop of an hour would drop the limit at which it began, and restart stopped growth.
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

// Kills returns the last kills of a container, oldest first, at most [KillsKept].
func (l *Ledger) Kills(container string) []memory.OOMKill { return slices.Clone(l.of(container).Kills) }

// Last returns the last kill of a container of a pod that is kept in detail; false: none.
func (l *Ledger) Last(c memory.ContainerRef) (memory.OOMKill, bool) {
	kills := l.of(c.Container).Kills
	for i := range kills {
		if k := &kills[len(kills)-1-i]; k.Container.UID == c.UID {
			return *k, true
		}
	}
	return memory.OOMKill{}, false
}

// All returns the kills kept in detail of all containers, oldest first.
func (l *Ledger) All() []memory.OOMKill {
	var all []memory.OOMKill
	for _, name := range slices.Sorted(maps.Keys(l.names)) {
		all = append(all, l.names[name].Kills...)
	}
	slices.SortStableFunc(all, byTime)
	return all
}

// Total returns the number of all kills of a container, also those no longer kept in detail, without suspected ones.
func (l *Ledger) Total(container string) int64 {
	n := l.of(container)
	total := int64(len(n.Kills)) - l.Count(container, memory.OOMSuspected)
	for _, count := range n.Dropped {
		total += count
	}
	return total
}

// Count returns the number of kills of one kind.
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

// Totals returns [Ledger.Total] and [Ledger.StallTotal] of all containers.
func (l *Ledger) Totals() (kills, stalls int64) {
	for name := range l.names {
		kills, stalls = kills+l.Total(name), stalls+l.StallTotal(name)
	}
	return kills, stalls
}

// UsedUp sets the limit without its used-up loan for the containers of new kills; 0: no loan.
func (l *Ledger) UsedUp(now time.Time, own func(*memory.OOMKill) memory.Bytes) {
	for _, n := range l.names {
		for i := range n.Kills {
			if k := &n.Kills[i]; k.Own == 0 && k.Limit > 0 && k.Seen.Equal(storable(now)) {
				k.Own = own(k)
			}
		}
	}
}

// Attribute sets the programs of kills and stalls that have none yet, as far as the caller knows.
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
