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
	// maxHidden bounds the kills that memfit infers from one observation. A crash loop backs off to one restart in five
	// minutes, so 1000 are more than three days without an observation.
	maxHidden = 1000
	// goneFor is how long the cursors of a deleted pod are kept, so that a late event about it does not count as new.
	goneFor = time.Hour
)

// Ledger records the OOM kills of one workload, each exactly once, in bounded space. The zero value is empty and ready.
// It marshals to a few bytes per restarted container. It is not safe for concurrent use.
//
// Pod UID, container name, and the instance's index and ID identify a kill. For each container, a cursor stores which
// instances were processed. A pod without restarts that was created after the ledger needs no cursor.
//
// An existing pod is never dropped, because its status would be counted again. If the space for cursors is used up, new
// pods are not followed, and [Ledger.NotFollowed] returns their number.
type Ledger struct {
	since    time.Time            // the first update; earlier events are unknown
	names    map[string]*nameData // by container name, over all pods
	pods     map[podKey]*pod
	bytes    int  // the maximum stored size of the cursors, at most cursorBytes
	allExist bool // all cursors are of existing pods, so none can be dropped
	// notFollowed are pods that did not fit. Not stored: after a restart every pod is observed again.
	notFollowed map[podKey]struct{}
}

// nameData has the data of all containers with one name, as stored.
type nameData struct {
	// Limit is the container's limit at the creation of the youngest pod, at Born. Another pod's limit would change the
	// ledger, and so its checkpoint, with every observation during a rollout.
	Limit memory.Bytes `json:"limit,omitempty"`
	Born  time.Time    `json:"born,omitzero"`
	// Before is the limit of pods created before Since; pods created at Since may have Before or Limit. Zero: none.
	Before memory.Bytes `json:"before,omitempty"`
	Since  time.Time    `json:"since,omitzero"`

	Kills         []memory.OOMKill         `json:"kills,omitempty"`   // the kills kept in detail, oldest first
	Dropped       map[memory.OOMKind]int64 `json:"dropped,omitempty"` // the number of other kills
	Stalls        []memory.Stall           `json:"stalls,omitempty"`  // the stalls kept in detail, oldest first
	DroppedStalls int64                    `json:"droppedStalls,omitempty"`

	cursors int // the number of cursors with this name
}

type pod struct {
	gone       time.Time // when it was first missing; zero while it exists
	containers []cursor  // by name
}

// cursor is the processed position of one container of one pod.
type cursor struct {
	container string
	next      int32      // the index of the first instance whose end is not processed
	id        instanceID // the last processed instance
	finished  time.Time  // its end

	limited bool         // the limit of an instance is known
	limitOf int32        // the index of that instance
	limit   memory.Bytes // its effective limit
	asked   memory.Bytes // the higher limit in its status, if not proven to be effective; 0: none

	// These two are not stored, because they matter only for seconds.
	raise  raise        // the last raise
	unread memory.Bytes // the lowest limit replaced since the last reading of the kernel's counter; 0: none

	counter   bool       // the kernel's counter was read
	count     int32      // its value in the last reading in which it rose
	counterID instanceID // the instance that was counted
	counterOf int32      // the index of that instance
	countedAt time.Time  // the time of that reading
}

// Update adds observations and returns the new kills, oldest first. Observations may be out of order, repeated, late or
// incomplete. peak returns the highest demand of a container instance (0: none); nil: unknown.
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
	for _, doubtful := range []bool{false, true} { // observations whose verdict depends on neighbors' kills come last
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
	l.initialize()
	if l.since.IsZero() {
		l.since = now.UTC().Truncate(time.Second)
	}
}

// initialize makes the zero value writable.
func (l *Ledger) initialize() {
	if l.names == nil {
		l.names, l.pods, l.notFollowed = map[string]*nameData{}, map[podKey]*pod{}, map[podKey]struct{}{}
	}
}

// byName returns the data of a container name, which callers must not modify.
func (l *Ledger) byName(container string) *nameData {
	if n := l.names[container]; n != nil {
		return n
	}
	return &nameData{}
}

// observe returns the new kills in one observation. others are new kills of other containers of the pod.
func (l *Ledger) observe(
	o Observation, peak func(memory.ContainerRef) memory.Bytes, podPeak memory.Bytes, others []memory.OOMKill,
	now time.Time,
) []memory.OOMKill {
	born := plausible(o.PodCreated).Truncate(time.Second)
	if !l.ensureName(o.Container.Container, born) {
		if o.Restarts > 0 || len(o.Ended) > 0 {
			l.markNotFollowed(o.Container)
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
		l.observeQuiet(o, watched, peak(o.Container), now)
		return nil
	}
	watched = watched || c != nil
	if c == nil {
		if c = l.newCursor(o.Container); c == nil {
			l.markNotFollowed(o.Container)
			return nil
		}
		c.restore(l.byName(o.Container.Container).Kills, o)
	}
	var found []memory.OOMKill
	for _, t := range o.Ended {
		if c.processed(t) {
			continue
		}
		kills := l.killsShownBy(o, t, c, watched, peak(o.Container), podPeak, l.neighborKilled(o, t, others))
		found = append(found, correctTimes(o, t, now, kills)...)
		l.revertRaise(o, t, c)
		c.advance(t)
		watched = true
	}
	c.next = max(c.next, o.Restarts, 0) // skip ends that are no longer visible
	limit, asked := l.proven(o, c, peak(o.Container))
	l.recordRaise(c, o, limit, now)
	l.recordLimit(c, o, limit, asked)
	return found
}

// observeQuiet adds a cursor for a pod without restarts if it is older than the ledger, or its limit was changed.
// Almost all pods need none.
func (l *Ledger) observeQuiet(o Observation, watched bool, peak memory.Bytes, now time.Time) {
	switch {
	case l.limitChanged(o):
		limit, asked := l.proven(o, nil, peak)
		if c := l.newCursor(o.Container); c != nil {
			l.recordRaise(c, o, limit, now)
			l.storeLimit(c, limit, asked, notRun)
			l.recordLimit(c, o, limit, asked)
		}
	case !watched && l.bytes < quietBytes:
		l.newCursor(o.Container)
	}
}

// killsShownBy returns the kills that one termination shows: its own, and the inferred ones of instances that ended
// since the previous observation.
func (l *Ledger) killsShownBy(
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
		counted: c.counterShows(t) || l.agentCounted(o.Container, t), neighbor: neighbor,
		debugSession: o.debugSession(t), nodeShort: o.nodeShort(t),
	}
	if o.wasStopping(t) {
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
		Container: o.Container, Kind: v.kind, Time: storable(t.Finished), Limit: limit, Requested: asked,
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
	return append(l.inferHidden(kill, o, t, c), kill)
}

// inferHidden returns kills of instances whose ends were not observed, and only restartCount shows them. It assumes
// that they ended like the next instance, whose kill is visible.
func (l *Ledger) inferHidden(visible memory.OOMKill, o Observation, t Termination, c *cursor) []memory.OOMKill {
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
			kill.Limit, kill.Requested = limit, asked
		}
		if visible.Unreached > 0 {
			byNode(&kill)
		}
		kill.Peak, kill.Uptime = 0, 0
		kill.Confidence = visible.Confidence.Lower()
		if !t.Started.IsZero() {
			kill.Time = t.Started // at the latest
		}
		kill.Why = fmt.Sprintf("restart %d, inferred from restartCount, which rose by %d between two observations; "+
			"restart %d was %s, exit %d",
			i, t.Index-c.next+1, t.Index, reasonText(t.Reason), t.ExitCode)
		out = append(out, kill)
	}
	return out
}

// record records the new kills and returns them, oldest first.
func (l *Ledger) record(found []memory.OOMKill, now time.Time) []memory.OOMKill {
	slices.SortStableFunc(found, byTime)
	changed := map[*nameData]bool{}
	for i := range found {
		k := &found[i]
		k.Time, k.Seen = storable(k.Time), storable(now)
		k.Uptime = k.Uptime.Truncate(time.Second)
		n := l.names[k.Container.Container]
		if n == nil {
			n = &nameData{}
			l.names[k.Container.Container] = n
		}
		n.Kills, changed[n] = append(n.Kills, *k), true
	}
	for n := range changed {
		slices.SortStableFunc(n.Kills, byTime)
		all := n.Kills
		n.Kills = Thinned(all)
		n.addDropped(all, 1)
		n.addDropped(n.Kills, -1)
	}
	if len(found) > 0 {
		l.trimDetails()
	}
	return found
}

// addDropped adds each to the number of dropped kills, once for every one of kills.
func (n *nameData) addDropped(kills []memory.OOMKill, each int64) {
	for i := range kills {
		if n.Dropped == nil {
			n.Dropped = map[memory.OOMKind]int64{}
		}
		n.Dropped[kills[i].Kind] += each
	}
	maps.DeleteFunc(n.Dropped, func(_ memory.OOMKind, count int64) bool { return count == 0 })
}

// Thinned returns the kills of one container to keep in detail, oldest first: the last ones, and the first at each
// limit. Without these, a crash loop of an hour would drop the kill at its first limit, and growth that had stopped
// would begin again.
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

// Kills returns the kills of a container name that are kept in detail, oldest first, at most [KillsKept].
func (l *Ledger) Kills(container string) []memory.OOMKill {
	return slices.Clone(l.byName(container).Kills)
}

// Last returns the last kill of a container of a pod, if it is kept in detail; false: none.
func (l *Ledger) Last(c memory.ContainerRef) (memory.OOMKill, bool) {
	kills := l.byName(c.Container).Kills
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

// Total returns the number of kills of a container name, including those not kept in detail, without suspected ones.
func (l *Ledger) Total(container string) int64 {
	n := l.byName(container)
	total := int64(len(n.Kills)) - l.Count(container, memory.OOMSuspected)
	for _, count := range n.Dropped {
		total += count
	}
	return total
}

// Count returns the number of kills of a container name of one kind.
func (l *Ledger) Count(container string, kind memory.OOMKind) int64 {
	n := l.byName(container)
	count := n.Dropped[kind]
	for i := range n.Kills {
		if n.Kills[i].Kind == kind {
			count++
		}
	}
	return count
}

// Totals returns the sums of [Ledger.Total] and [Ledger.StallTotal] of all container names.
func (l *Ledger) Totals() (kills, stalls int64) {
	for name := range l.names {
		kills, stalls = kills+l.Total(name), stalls+l.StallTotal(name)
	}
	return kills, stalls
}

// SetLimitsWithoutLoan sets [memory.OOMKill.LimitWithoutLoan] of the kills recorded at now. own returns the limit of
// the kill's container without its loan; 0: it has none.
func (l *Ledger) SetLimitsWithoutLoan(now time.Time, own func(*memory.OOMKill) memory.Bytes) {
	for _, n := range l.names {
		for i := range n.Kills {
			if k := &n.Kills[i]; k.LimitWithoutLoan == 0 && k.Limit > 0 && k.Seen.Equal(storable(now)) {
				k.LimitWithoutLoan = own(k)
			}
		}
	}
}

// Attribute sets the missing programs of kills and stalls. program returns a container's fingerprint; empty: unknown.
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
