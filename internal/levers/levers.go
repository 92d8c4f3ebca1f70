// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package levers

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

// Process is one process of a container, and what was found of it.
type Process struct {
	// RSS is all that is resident of it, Usages what readers found in it.
	RSS    memory.Bytes
	Usages []amounts.Usage
	// Unread: a reader detected something and could not read it.
	Unread bool
	// Env are variables for memory that it was started with.
	Env map[string]string
	// Runtime is what runs in it, as the API names it, and Version its version; empty: not known.
	Runtime, Version string
}

// Prediction is what one lever would give back in all processes of a container.
type Prediction struct {
	// Action, Knob and How are those of [runtimes.Lever].
	Action, Knob, How string
	// Least and Most are the bounds of what would not be resident any more.
	Least, Most memory.Bytes
	// Limit is the highest of [runtimes.Gain].
	Limit memory.Bytes
	// Why explains how they were computed, in the process where the gain is largest, and Cost is that of
	// [runtimes.Gain] there.
	Why  string
	Cost runtimes.Cost
	// Unreachable: none of them can do it.
	Unreachable bool

	largest memory.Bytes // Most of the process that Why is about
}

// Exact reports whether the bounds are one number.
func (p *Prediction) Exact() bool { return p.Least == p.Most }

// Outcome is what would help a container.
type Outcome struct {
	// Predictions have the surest gain first, of those without a gain the one with the highest cost, and what no user can
	// do last.
	Predictions []Prediction
	// Summary states in a sentence what reduces memory most, or that nothing does.
	Summary string
}

// Predict asks the levers of each process. limit is the container's; 0: none.
func Predict(processes []Process, limit memory.Bytes) Outcome {
	all := map[string]*Prediction{}
	var total sums
	for i := range processes {
		p := &processes[i]
		total.add(p)
		predict(all, p, limit)
	}
	var out Outcome
	for _, p := range all {
		out.Predictions = append(out.Predictions, *p)
	}
	slices.SortFunc(out.Predictions, func(a, b Prediction) int {
		return cmp.Or(
			unreachable(a)-unreachable(b), cmp.Compare(b.Least, a.Least), cmp.Compare(b.Most, a.Most),
			cmp.Compare(b.Cost.Collector, a.Cost.Collector), cmp.Compare(a.Action, b.Action),
		)
	})
	out.Summary = total.summary(out.Predictions)
	return out
}

func unreachable(p Prediction) int {
	if p.Unreachable {
		return 1
	}
	return 0
}

// predict adds what the levers of one process would give.
func predict(all map[string]*Prediction, p *Process, limit memory.Bytes) {
	row := rowOf(p)
	of := runtimes.Process{Usages: p.Usages, Env: p.Env, Limit: limit}
	if p.Runtime == row.Name {
		of.Version = runtimes.ParseVersion(p.Version)
	}
	for i := range row.Levers {
		lever := &row.Levers[i]
		gain, ok := lever.Predict(of)
		if !ok {
			continue
		}
		if p.RSS > 0 { // a heap that grows is read after the kernel, and memory that does not exist cannot be freed
			gain.Least, gain.Most = min(gain.Least, p.RSS), min(gain.Most, p.RSS)
		}
		sum := all[lever.Action]
		first := sum == nil
		if first {
			sum = &Prediction{Action: lever.Action, Unreachable: true}
			all[lever.Action] = sum
		}
		larger := gain.Most > sum.largest || gain.Most == sum.largest && gain.Cost.Collector > sum.Cost.Collector
		if first || larger {
			sum.Knob, sum.How, sum.Why, sum.Cost, sum.largest = lever.Knob, lever.How, gain.Why, gain.Cost, gain.Most
		}
		sum.Unreachable = sum.Unreachable && lever.Unreachable
		sum.Limit = max(sum.Limit, gain.Limit)
		sum.Least, sum.Most = sum.Least.Plus(gain.Least), sum.Most.Plus(gain.Most)
	}
}

// rowOf is the runtime of a process: the one whose heap was read, else the one that was found, else native code.
func rowOf(p *Process) *runtimes.Runtime {
	for i := range p.Usages {
		if row := runtimes.ByHeapReader(p.Usages[i].Reader); row != nil {
			return row
		}
	}
	return runtimes.Lookup(p.Runtime)
}

// MaxHeap returns the largest heap that a process of the runtime allows itself, as a reader read it; 0: not known.
func MaxHeap(runtime string, usages []amounts.Usage) memory.Bytes {
	row := runtimes.Lookup(runtime)
	if row.MaxHeap == "" {
		return 0
	}
	for i := range usages {
		if usages[i].Reader == row.HeapReader {
			return memory.Bytes(max(usages[i].Details[row.MaxHeap], 0))
		}
	}
	return 0
}

// sums are over all processes.
type sums struct {
	resident, inUse, free memory.Bytes
	known, unread         bool
}

func (s *sums) add(p *Process) {
	s.resident = s.resident.Plus(p.RSS)
	s.unread = s.unread || p.Unread
	for i := range p.Usages {
		u := &p.Usages[i]
		if !u.Understood() {
			s.unread = true
			continue
		}
		s.known = true
		s.inUse, s.free = s.inUse.Plus(u.InUse), s.free.Plus(u.FreeResident)
	}
}

const (
	// worthPercent of what is resident, and at least worthLeast, is a gain worth acting on.
	worthPercent = 5
	worthLeast   = 8 * memory.MiB
)

// Worth returns how much of what is resident is worth acting on: 5 % and at least 8Mi.
func Worth(resident memory.Bytes) memory.Bytes {
	return max(resident.Percent(worthPercent), worthLeast)
}

// summary is a sentence on all predictions, which are in order.
func (s *sums) summary(all []Prediction) string {
	worth := Worth(s.resident)
	switch {
	case !s.known && s.unread:
		return "what would help is not known: the heaps of its processes could not be read"
	case !s.known:
		return "what would help is not known: no heap that memfit can read was found"
	}
	all = slices.DeleteFunc(slices.Clone(all), func(p Prediction) bool { return p.Unreachable })
	if len(all) == 0 {
		return "memfit knows nothing that would give memory of it back"
	}
	best := &all[0]
	if best.Least >= worth {
		return fmt.Sprintf("%s would give back %s of the %s that are resident", best.Action, best.amount(), s.resident)
	}
	open := slices.MaxFunc(all, func(a, b Prediction) int { return cmp.Compare(a.Most, b.Most) })
	switch {
	case open.Most >= worth && best.Least == 0:
		return fmt.Sprintf("%s may give back up to %s of the %s that are resident; no gain is certain",
			open.Action, open.Most, s.resident)
	case open.Most >= worth:
		return fmt.Sprintf("%s may give back up to %s of the %s that are resident; only %s are certain, by %s",
			open.Action, open.Most, s.resident, best.Least, best.Action)
	case s.free >= worth:
		return fmt.Sprintf("nothing gives back more than %s of the %s that are resident: %s are free, and kept by what "+
			"manages them", open.Most, s.resident, s.free)
	}
	return fmt.Sprintf("nothing gives back more than %s of the %s that are resident: %s of heaps are in use, so that "+
		"only a smaller working set or a higher limit helps", open.Most, s.resident, s.inUse)
}

// amount is "61Mi", or "at least 61Mi and at most 188Mi".
func (p *Prediction) amount() string {
	if p.Exact() {
		return p.Least.String()
	}
	return fmt.Sprintf("at least %s and at most %s", p.Least, p.Most)
}

// String is a line about a prediction: "malloc_trim: 61Mi (how that was computed); how to do it".
func (p *Prediction) String() string {
	gain := p.Least.String()
	switch {
	case p.Most == 0:
		return fmt.Sprintf("%s: nothing (%s)", p.Action, p.Why)
	case p.Least == 0:
		gain = "0 to " + p.Most.String()
	case !p.Exact():
		gain += " to " + p.Most.String()
	}
	return fmt.Sprintf("%s: %s (%s); %s", p.Action, gain, p.Why, p.How)
}
