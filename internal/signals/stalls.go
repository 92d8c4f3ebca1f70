// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

const (
	// StallsKept is the number of stalls kept in detail for each container name; older ones live on in the count. One takes some 250 bytes.
	StallsKept = 4
	// stallNames bounds the container names with stalls.
	stallNames = 32
	// stallAgain is how soon after its end a stall at the same limit is the same one: load comes and goes within minutes.
	stallAgain = 10 * time.Minute
)

// stalls are those of one workload, by container name. Their counts have nothing to do with those of kills.
type stalls struct {
	kept   map[string][]memory.Stall
	totals map[string]int64
}

// UpdateStalls files what watches found and returns the stalls that are new and those that ended since the last time. It may be told the
// same again and again. Stalls in pods that do not live any more end.
func (l *Ledger) UpdateStalls(found []memory.Stall, live map[types.UID]bool, now time.Time) (began, ended []memory.Stall) {
	l.stalls.make()
	for _, s := range found {
		if l.namespace == "" {
			l.namespace = s.Container.Namespace
		}
		s = inSeconds(s)
		last := l.stalls.last(s.Container)
		switch {
		case last != nil && !s.Ended.IsZero() && s.Ended.Before(last.Since): // a newer one is on file
		case last != nil && sameStall(last, &s):
			if goOn(last, &s) {
				ended = append(ended, *last)
			}
		case l.stalls.add(s, last):
			began = append(began, s)
		}
	}
	return began, append(ended, l.stalls.endGone(live, now.UTC().Truncate(time.Second))...)
}

func (s *stalls) make() {
	if s.kept == nil {
		s.kept, s.totals = map[string][]memory.Stall{}, map[string]int64{}
	}
}

// last is the newest stall of one container of one pod.
func (s *stalls) last(ref memory.ContainerRef) *memory.Stall {
	kept := s.kept[ref.Container]
	for i := len(kept) - 1; i >= 0; i-- {
		if kept[i].Container.UID == ref.UID {
			return &kept[i]
		}
	}
	return nil
}

// sameStall is true for the stall on file as it is seen now, and for one that comes back soon at the same limit.
func sameStall(onFile, seen *memory.Stall) bool {
	return onFile.Limit == seen.Limit && (onFile.Ended.IsZero() || seen.Since.Before(onFile.Ended.Add(stallAgain)))
}

// goOn brings the stall on file up to date and reports whether it has ended by that.
func goOn(onFile, seen *memory.Stall) bool {
	open := onFile.Ended.IsZero()
	onFile.Ended, onFile.FaultsAfter = seen.Ended, seen.FaultsAfter
	if !onFile.NotRelieved { // what was tried in vain stays known
		onFile.RaisedTo, onFile.NotRelieved = seen.RaisedTo, seen.NotRelieved
	}
	return open && !seen.Ended.IsZero()
}

// add counts a new stall. One of the same container that was still open ended when this one, at another limit, began.
func (s *stalls) add(stall memory.Stall, last *memory.Stall) bool {
	name := stall.Container.Container
	if _, known := s.kept[name]; !known && len(s.kept) >= stallNames {
		return false
	}
	if last != nil && last.Ended.IsZero() {
		last.Ended = stall.Since
	}
	s.totals[name]++
	kept := append(s.kept[name], stall)
	slices.SortStableFunc(kept, stallsByTime)
	s.kept[name] = slices.Clone(kept[max(0, len(kept)-StallsKept):])
	return true
}

// endGone ends the stalls of pods that are gone.
func (s *stalls) endGone(live map[types.UID]bool, now time.Time) (ended []memory.Stall) {
	for _, name := range slices.Sorted(maps.Keys(s.kept)) {
		for i := range s.kept[name] {
			if stall := &s.kept[name][i]; stall.Ended.IsZero() && !live[stall.Container.UID] {
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

// inSeconds is a stall as it is stored.
func inSeconds(s memory.Stall) memory.Stall {
	for _, t := range []*time.Time{&s.Since, &s.Known, &s.Ended} {
		*t = t.UTC().Truncate(time.Second)
	}
	return s
}

// Stalls are the last stalls of a container, oldest first, at most [StallsKept].
func (l *Ledger) Stalls(container string) []memory.Stall {
	return slices.Clone(l.stalls.kept[container])
}

// AllStalls are the stalls kept in detail of all containers, oldest first.
func (l *Ledger) AllStalls() []memory.Stall {
	var all []memory.Stall
	for _, name := range slices.Sorted(maps.Keys(l.stalls.kept)) {
		all = append(all, l.stalls.kept[name]...)
	}
	slices.SortStableFunc(all, stallsByTime)
	return all
}

// StallTotal counts all stalls of a container ever seen. Kills are not in it.
func (l *Ledger) StallTotal(container string) int64 { return l.stalls.totals[container] }

// OpenStall is the stall of a container of a pod that goes on as far as is known; not ok: there is none.
func (l *Ledger) OpenStall(ref memory.ContainerRef) (memory.Stall, bool) {
	if s := l.stalls.last(ref); s != nil && s.Ended.IsZero() {
		return *s, true
	}
	return memory.Stall{}, false
}

// storedStalls is the stored form, beside the kills in the ledger.
type storedStalls struct {
	Kept   map[string][]storedStall `json:"kept,omitempty"`
	Totals map[string]int64         `json:"totals,omitempty"`
}

type storedStall struct {
	Pod      string       `json:"p"`
	UID      types.UID    `json:"u"`
	Limit    memory.Bytes `json:"l"`
	Since    int64        `json:"s"`
	Known    int64        `json:"k"`
	Ended    int64        `json:"e,omitempty"`
	Anon     memory.Bytes `json:"a,omitempty"`
	Usage    memory.Bytes `json:"us,omitempty"`
	Faults   int32        `json:"f,omitempty"`
	Pressure int32        `json:"pr,omitempty"`
	RaisedTo memory.Bytes `json:"rt,omitempty"`
	After    int32        `json:"fa,omitempty"`
	InVain   bool         `json:"nr,omitempty"`
}

// store is nil when there is nothing to store.
func (s *stalls) store() *storedStalls {
	if len(s.totals) == 0 {
		return nil
	}
	out := &storedStalls{Kept: map[string][]storedStall{}, Totals: s.totals}
	for name, kept := range s.kept {
		for i := range kept {
			k := &kept[i]
			out.Kept[name] = append(out.Kept[name], storedStall{
				Pod: k.Container.Pod, UID: k.Container.UID, Limit: k.Limit, Since: unix(k.Since), Known: unix(k.Known), Ended: unix(k.Ended),
				Anon: k.Anon, Usage: k.Usage, Faults: k.Faults, Pressure: k.PressurePercent, RaisedTo: k.RaisedTo, After: k.FaultsAfter,
				InVain: k.NotRelieved,
			})
		}
	}
	return out
}

func restoreStalls(in *storedStalls, namespace string) (out stalls) {
	if in == nil {
		return out
	}
	out.make()
	maps.Copy(out.totals, in.Totals)
	for name, kept := range in.Kept {
		for _, k := range kept[max(0, len(kept)-StallsKept):] {
			out.kept[name] = append(out.kept[name], memory.Stall{
				Container: memory.ContainerRef{Namespace: namespace, Pod: k.Pod, UID: k.UID, Container: name}, Limit: k.Limit,
				Since: fromUnix(k.Since), Known: fromUnix(k.Known), Ended: fromUnix(k.Ended), Anon: k.Anon, Usage: k.Usage,
				Faults: k.Faults, PressurePercent: k.Pressure, RaisedTo: k.RaisedTo, FaultsAfter: k.After, NotRelieved: k.InVain,
			})
		}
	}
	return out
}
