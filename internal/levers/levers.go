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

// Process is one process of a container, with its attribution.
type Process struct {
	RSS    memory.Bytes      // resident memory
	Usages []amounts.Usage   // the results of readers
	Unread bool              // a reader detected a heap and could not read it
	Env    map[string]string // environment variables for memory settings
	// Runtime is the runtime in the API's spelling, and Version the runtime's version; empty: unknown.
	Runtime, Version string
}

// Prediction is the gain of one lever in all processes of a container.
type Prediction struct {
	// Action, Knob and How come from [runtimes.Lever].
	Action, Knob, How string
	// Least and Most bound the reduction of resident memory.
	Least, Most memory.Bytes
	Limit       memory.Bytes // the highest Limit of a [runtimes.Gain]
	// Why explains the computation of the largest gain of a process, and Cost is the Cost of that [runtimes.Gain].
	Why         string
	Cost        runtimes.Cost
	Unreachable bool // no process can perform the action

	largest memory.Bytes // Most of the process that Why is about
}

// Exact reports whether the bounds are one number.
func (p *Prediction) Exact() bool { return p.Least == p.Most }

// Outcome has the predictions for a container.
type Outcome struct {
	// Predictions are sorted by certain gain, possible gain and cost, the largest first; unreachable ones are last.
	Predictions []Prediction
	// Summary states in a sentence which action reduces memory most, or that none does.
	Summary string
}

// Predict evaluates the levers of all processes of a container. limit is the container's; 0: none.
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

// predict adds the gains of one process to all, by action.
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
		if p.RSS > 0 { // a growing heap is read after the kernel's figure, which bounds the gain
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

// rowOf returns the runtime of a process: that of the heap that was read, else the detected one, else native code.
func rowOf(p *Process) *runtimes.Runtime {
	for i := range p.Usages {
		if row := runtimes.ByHeapReader(p.Usages[i].Reader); row != nil {
			return row
		}
	}
	return runtimes.Lookup(p.Runtime)
}

// MaxHeap returns the maximum heap that a reader found in a process of the runtime; 0: unknown.
func MaxHeap(runtime string, usages []amounts.Usage) memory.Bytes {
	row := runtimes.Lookup(runtime)
	for i := range usages {
		if usages[i].Reader == row.HeapReader {
			return usages[i].Bytes(row.MaxHeap)
		}
	}
	return 0
}

// sums are totals over all processes.
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
	// worthPercent and minWorth define [Worth].
	worthPercent = 5
	minWorth     = 8 * memory.MiB
)

// Worth returns the least gain worth acting on: 5 % of resident memory and at least 8Mi.
func Worth(resident memory.Bytes) memory.Bytes {
	return max(resident.Percent(worthPercent), minWorth)
}

// summary returns a sentence about the predictions, which must be sorted.
func (s *sums) summary(all []Prediction) string {
	worth := Worth(s.resident)
	switch {
	case !s.known && s.unread:
		return "no action is known to help: the heaps of its processes could not be read"
	case !s.known:
		return "no action is known to help: memfit found no heap that it can read"
	}
	all = slices.DeleteFunc(slices.Clone(all), func(p Prediction) bool { return p.Unreachable })
	if len(all) == 0 {
		return "memfit knows no action that would give its memory back"
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
		return fmt.Sprintf("no action gives back more than %s of the %s that are resident: %s are free, and their "+
			"allocators keep them", open.Most, s.resident, s.free)
	}
	return fmt.Sprintf("no action gives back more than %s of the %s that are resident: %s of heaps are in use, so only "+
		"a smaller working set or a higher limit helps", open.Most, s.resident, s.inUse)
}

// amount returns "61Mi", or "at least 61Mi and at most 188Mi".
func (p *Prediction) amount() string {
	if p.Exact() {
		return p.Least.String()
	}
	return fmt.Sprintf("at least %s and at most %s", p.Least, p.Most)
}

// String returns a line about a prediction: "malloc_trim: 61Mi (how that was computed); how to do it".
func (p *Prediction) String() string {
	gain := p.Least.String()
	switch {
	case p.Most == 0:
		return fmt.Sprintf("%s: nothing (%s)", p.Action, p.Why)
	case !p.Exact():
		gain += " to " + p.Most.String()
	}
	return fmt.Sprintf("%s: %s (%s); %s", p.Action, gain, p.Why, p.How)
}
