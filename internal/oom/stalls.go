// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

const (
	// StallsKept is the number of stalls kept in detail for each container name; older ones are only counted. A stall
	// takes some 300 bytes.
	StallsKept = 4
	// stallNames bounds the number of container names with stalls.
	stallNames = 32
	// stallAgain is the time after a stall in which a new stall at the same limit continues the old one. Unlike periods of
	// evidence, --lab-compress-evidence does not shorten it, because the kernel determines the length of a stall.
	stallAgain = 10 * time.Minute
	// ineffectiveFor is how long an ineffective raise is not retried, as long as a lower limit that led to kills.
	ineffectiveFor = 7 * period.Day
)

// UpdateStalls records the stalls that the containers' [StallWatch]es found, and returns the stalls that began and
// ended since the last call. A stall may be found repeatedly. Stalls of pods that are not in existing end.
func (l *Ledger) UpdateStalls(
	found []memory.Stall, existing map[types.UID]bool, now time.Time,
) (began, ended []memory.Stall) {
	l.initialize()
	for _, s := range slices.SortedFunc(slices.Values(found), stallsByTime) {
		s = inSeconds(s)
		last := l.lastStall(s.Container)
		switch {
		case last != nil && !s.Ended.IsZero() && s.Ended.Before(last.Since): // a newer one is recorded
		case last != nil && sameStall(last, &s):
			if update(last, &s) {
				ended = append(ended, *last)
			}
		case l.addStall(s, last):
			began = append(began, s)
		}
	}
	return began, append(ended, l.endGone(existing, storable(now))...)
}

// lastStall returns the newest stall of one container of one pod.
func (l *Ledger) lastStall(ref memory.ContainerRef) *memory.Stall {
	kept := l.byName(ref.Container).Stalls
	for i := len(kept) - 1; i >= 0; i-- {
		if kept[i].Container.UID == ref.UID {
			return &kept[i]
		}
	}
	return nil
}

// sameStall reports whether seen is the recorded stall, or continues it soon at the same limit.
func sameStall(recorded, seen *memory.Stall) bool {
	return recorded.Limit == seen.Limit && (recorded.Ended.IsZero() || seen.Since.Before(recorded.Ended.Add(stallAgain)))
}

// update updates the recorded stall and reports whether it has just ended.
func update(recorded, seen *memory.Stall) bool {
	open := recorded.Ended.IsZero()
	recorded.Ended = seen.Ended
	if !recorded.NotRelieved { // keep an ineffective raise
		recorded.RaisedTo, recorded.FaultsAfter, recorded.NotRelieved = seen.RaisedTo, seen.FaultsAfter, seen.NotRelieved
	}
	return open && !seen.Ended.IsZero()
}

// addStall records a new stall, and reports whether it did. last is the container's last stall; if it is open, it ends
// when the new one, at another limit, begins. A stall older than all kept ones is not added: it was counted and dropped
// before.
func (l *Ledger) addStall(stall memory.Stall, last *memory.Stall) bool {
	name, stalled := stall.Container.Container, 0
	for _, n := range l.names {
		if len(n.Stalls) > 0 {
			stalled++
		}
	}
	if len(l.byName(name).Stalls) == 0 && stalled >= stallNames || !l.ensureName(name, stall.Since) {
		return false
	}
	n := l.names[name]
	if last != nil && last.Ended.IsZero() {
		last.Ended = stall.Since
	}
	all := append(slices.Clone(n.Stalls), stall)
	slices.SortStableFunc(all, stallsByTime)
	kept := slices.Clone(newestStalls(all))
	if !slices.Contains(kept, stall) {
		return false
	}
	n.Stalls = kept
	n.DroppedStalls += int64(len(all) - len(kept))
	return true
}

// newestStalls returns at most StallsKept stalls: the newest ones, and the last one with an ineffective raise, which
// must not be repeated.
func newestStalls(kept []memory.Stall) []memory.Stall {
	extra := len(kept) - StallsKept
	if extra <= 0 {
		return kept
	}
	for i, k := range slices.Backward(kept) {
		if k.NotRelieved && i < extra {
			return append([]memory.Stall{k}, kept[extra+1:]...)
		}
		if k.NotRelieved {
			break
		}
	}
	return kept[extra:]
}

// endGone ends the stalls of deleted pods.
func (l *Ledger) endGone(existing map[types.UID]bool, now time.Time) (ended []memory.Stall) {
	for _, name := range slices.Sorted(maps.Keys(l.names)) {
		for i := range l.names[name].Stalls {
			if stall := &l.names[name].Stalls[i]; stall.Ended.IsZero() && !existing[stall.Container.UID] {
				stall.Ended = now
				ended = append(ended, *stall)
			}
		}
	}
	return ended
}

func stallsByTime(a, b memory.Stall) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Container.Pod, b.Container.Pod))
}

// inSeconds returns a stall with stored precision.
func inSeconds(s memory.Stall) memory.Stall {
	for _, t := range []*time.Time{&s.Since, &s.Confirmed, &s.Ended} {
		*t = storable(*t)
	}
	return s
}

// AllStalls returns the stalls kept in detail of all containers, oldest first.
func (l *Ledger) AllStalls() []memory.Stall {
	var all []memory.Stall
	for _, name := range slices.Sorted(maps.Keys(l.names)) {
		all = append(all, l.names[name].Stalls...)
	}
	slices.SortStableFunc(all, stallsByTime)
	return all
}

// StallTotal returns the number of all stalls of a container, without kills.
func (l *Ledger) StallTotal(container string) int64 {
	n := l.byName(container)
	return n.DroppedStalls + int64(len(n.Stalls))
}

// KillsAndStalls returns the evidence for higher limits, oldest first: the kills of all containers, and their stalls
// converted to kills. The time of an open stall is now. For [ineffectiveFor] after an ineffective raise, it omits
// stalls at the raised limit and below.
func (l *Ledger) KillsAndStalls(now time.Time) []memory.OOMKill {
	all := l.All()
	for _, name := range slices.Sorted(maps.Keys(l.names)) {
		stalls := l.names[name].Stalls
		for i := range stalls {
			if s := &stalls[i]; !raiseFailedAt(stalls, s.Limit, now) {
				all = append(all, asKill(s, now))
			}
		}
	}
	slices.SortStableFunc(all, byTime)
	return all
}

func asKill(s *memory.Stall, now time.Time) memory.OOMKill {
	at := s.Confirmed
	if s.Ended.IsZero() && now.After(at) {
		at = now.UTC().Truncate(time.Second)
	}
	return memory.OOMKill{
		Container: s.Container, Program: s.Program, Kind: memory.OOMStall, Time: at, Limit: s.Limit, Peak: s.Anon,
		Confidence: memory.High, Why: s.Why(), Proven: true, // usage was at the limit
	}
}

func raiseFailedAt(kept []memory.Stall, limit memory.Bytes, now time.Time) bool {
	return slices.ContainsFunc(kept, func(s memory.Stall) bool {
		return limit <= s.RaisedTo && raiseFailed(&s, now)
	})
}

// raiseFailed reports whether a raise did not end the stall, and the stall is open or ended within [ineffectiveFor].
func raiseFailed(s *memory.Stall, now time.Time) bool {
	return s.NotRelieved && (s.Ended.IsZero() || period.Of(now.Sub(s.Ended)) < ineffectiveFor)
}

// IneffectiveRaise returns the last stall of a container with an ineffective raise; ok is false if none is within
// [ineffectiveFor].
func (l *Ledger) IneffectiveRaise(container string, now time.Time) (s memory.Stall, ok bool) {
	for _, k := range l.byName(container).Stalls {
		if raiseFailed(&k, now) {
			s, ok = k, true
		}
	}
	return s, ok
}

// OpenStall returns the current stall of a container of a pod; false: none.
func (l *Ledger) OpenStall(ref memory.ContainerRef) (memory.Stall, bool) {
	if s := l.lastStall(ref); s != nil && s.Ended.IsZero() {
		return *s, true
	}
	return memory.Stall{}, false
}
