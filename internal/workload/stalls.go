// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/report"
)

// stallChanges are the changes of stalls in one step. explained are other stalls with a new report of an agent.
type stallChanges struct{ began, ended, explained []memory.Stall }

// watchStalls adds samples to the stall watches of their containers and reports whether a stall began or ended. Call it
// before storing the ledger: after a crash, a stall that is not in the ledger would be lost.
func (st *State) watchStalls(samples []memory.Sample) (found bool) {
	for i := range samples {
		s := &samples[i]
		st.countsFaults = st.countsFaults || s.HasMajorFaults
		in := st.instance(&s.Container)
		if in == nil {
			continue // the first sample of a container, whose limit is unknown
		}
		if !in.stallsKnown {
			in.stallsKnown = true
			if open, ongoing := st.ledger.OpenStall(s.Container); ongoing {
				in.stalls.Resume(open)
			}
		}
		found = in.stalls.Add(*s, oom.StallBounds{Limit: in.limit, High: in.high}) || found
	}
	return found
}

// updateStalls updates the ledger from the stall watches and the agents' reports.
func (st *State) updateStalls(agents []oom.AgentStall, existing map[types.UID]bool, now time.Time) stallChanges {
	for i := range agents {
		if in := st.instance(&agents[i].Container); in != nil && in.stallsKnown {
			in.stalls.Report(agents[i], oom.StallBounds{Limit: in.limit, High: in.high}, now)
		}
	}
	var found []memory.Stall
	for _, in := range st.instances {
		if s, ok := in.stalls.Stall(); ok {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b memory.Stall) int { return a.Since.Compare(b.Since) })
	var c stallChanges
	c.began, c.ended = st.ledger.UpdateStalls(found, existing, now)
	for _, s := range st.ledger.ExplainStalls(agents, now) {
		same := func(other memory.Stall) bool { return other.Container == s.Container && other.Since.Equal(s.Since) }
		reported := false
		for _, list := range [][]memory.Stall{c.began, c.ended} {
			if i := slices.IndexFunc(list, same); i >= 0 {
				list[i], reported = s, true
			}
		}
		if !reported {
			c.explained = append(c.explained, s)
		}
	}
	return c
}

// stallRecords returns the total number of stalls and the records of the last ones, newest first.
func stallRecords(l *oom.Ledger) (int64, []v1alpha1.StallRecord) {
	_, total := l.Totals()
	stalls := l.AllStalls()
	slices.Reverse(stalls)
	var records []v1alpha1.StallRecord
	for i := range head(stalls, maxStallRecords) {
		s := &stalls[i]
		r := v1alpha1.StallRecord{
			Anonymous: format.Quantity(s.Anon), Container: s.Container.Container, Limit: s.Limit.Quantity(),
			MajorFaultsPerSecond: s.Faults, Pod: s.Container.Pod, IncreasedTo: format.Exact(s.RaisedTo),
			IncreaseIneffective: s.NotRelieved, Summary: report.Stall(s), Time: metav1.NewTime(s.Since),
		}
		if !s.Ended.IsZero() {
			r.Ended = &metav1.Time{Time: s.Ended}
		}
		records = append(records, r)
	}
	return total, records
}

// stallCondition returns the MemoryStalled condition: a current stall, otherwise the outcome of the last one.
func stallCondition(s *Snapshot, st *State, now time.Time) metav1.Condition {
	window := recentWindow(s)
	var ongoing, ineffective, last *memory.Stall
	all := st.ledger.AllStalls()
	for i := range all {
		switch k := &all[i]; {
		case k.Ended.IsZero():
			ongoing = k
		case now.Sub(k.Ended) > window:
		case k.NotRelieved:
			ineffective = k
		default:
			last = k
		}
	}
	inPod := func(s *memory.Stall) string { return "Pod " + s.Container.Pod + ": " + report.Stall(s) }
	switch {
	case ongoing != nil && !ongoing.NotRelieved:
		message := inPod(ongoing)
		if ongoing.RaisedTo == 0 {
			message += "; a higher limit or a restart of the pod ends it"
		}
		return conditionMemoryStalled.True(v1alpha1.ReasonStallOngoing, message)
	case ongoing != nil || ineffective != nil:
		return conditionMemoryStalled.True(v1alpha1.ReasonIncreaseIneffective, inPod(cmp.Or(ongoing, ineffective))+
			"; check the disk and the files that the container reads")
	case last != nil:
		message := "The last one, in pod " + last.Container.Pod + ": " + report.Stall(last)
		return conditionMemoryStalled.False(v1alpha1.ReasonStallEnded, message)
	case st.Source != "" && !st.countsFaults:
		return conditionMemoryStalled.Unknown(v1alpha1.ReasonFaultsNotCounted,
			"Usage comes from "+st.Source+", which does not count major page faults, so stalls are not detected. To detect "+
				"stalls, let memfit read the kubelets (RBAC nodes/stats)")
	}
	message := "No container stalled at its limit in the last " + format.Duration(window)
	return conditionMemoryStalled.False(v1alpha1.ReasonNoStall, message)
}

// reportIneffectiveRaise puts an ineffective raise first in c, because it explains why the limit is unchanged.
func (st *State) reportIneffectiveRaise(c *v1alpha1.ContainerRecommendation, now time.Time) {
	s, found := st.ledger.IneffectiveRaise(c.Container, now)
	if !found {
		return
	}
	how := fmt.Sprintf("%d major faults a second before, %d after", s.Faults, s.FaultsAfter)
	if s.Faults == 0 {
		how = "memory pressure did not decrease"
	}
	c.Summary = fmt.Sprintf("Raising the limit from %s to %s did not end a stall (%s), so memfit does not raise it "+
		"again; %s", s.Limit, s.RaisedTo, how, c.Summary)
	const advice = "a stall continued after the limit was raised: check the disk and the files that the container reads"
	c.Advice = head(append([]string{advice}, c.Advice...), maxAdvice)
}

// maxAdvice and maxStallRecords are the API's bounds.
const maxAdvice, maxStallRecords = 8, 8

func stallEvents(snapshot *Snapshot, c stallChanges, summaries map[string]string) (all []Event) {
	add := func(s *memory.Stall, kind, reason, summary string) {
		all = append(all, containerEvent(snapshot, s.Container, kind, reason, report.Stall(s), summary))
	}
	for i := range c.began {
		s := &c.began[i]
		add(s, corev1.EventTypeWarning, v1alpha1.EventMemoryStalled, summaries[s.Container.Container])
	}
	for i := range c.ended {
		s, kind, reason := &c.ended[i], corev1.EventTypeNormal, v1alpha1.ReasonStallEnded
		if s.NotRelieved {
			kind, reason = corev1.EventTypeWarning, v1alpha1.ReasonIncreaseIneffective
		}
		add(s, kind, reason, "")
	}
	for i := range c.explained {
		add(&c.explained[i], corev1.EventTypeNormal, v1alpha1.EventStallExplained, "")
	}
	return all
}
