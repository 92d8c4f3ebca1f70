// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/internal/format"
)

// History is what memfit did to the pods of a workload, among the kills and stalls before and after.
type History struct {
	of *v1alpha1.MemoryRecommendation
	// Entries are newest first.
	Entries []Entry
}

// Entry is one thing that happened: exactly one of Change, Kill and Stall. They are the items of `kubectl memfit
// history -o json`.
type Entry struct {
	Time metav1.Time `json:"time"`
	// What happened: the kind of the change, OOMKill or Stall. Pod is the one it happened to, or the last one of several.
	What   string                  `json:"what"`
	Pod    string                  `json:"pod"`
	Change *v1alpha1.ChangeRecord  `json:"change,omitempty"`
	Kill   *v1alpha1.OOMKillRecord `json:"oomKill,omitempty"`
	Stall  *v1alpha1.StallRecord   `json:"stall,omitempty"`
	// When, Title and Why are for people: the time, a line that describes what happened, and the text below it.
	When, Title, Why string `json:"-"`
}

// HistoryOf puts what a recommendation keeps in the order of time.
func HistoryOf(rec *v1alpha1.MemoryRecommendation) History {
	s := &rec.Status
	h := History{of: rec}
	add := func(e Entry) {
		e.When = format.Time(e.Time.Time)
		h.Entries = append(h.Entries, e)
	}
	for i := range s.RecentChanges {
		c := &s.RecentChanges[i]
		add(Entry{Time: c.Time, What: c.Kind, Pod: c.Pod, Change: c, Title: changeTitle(c), Why: c.Why})
	}
	for i := range s.RecentOOMKills {
		k := &s.RecentOOMKills[i]
		title := "OOM kill (" + k.Kind + "), pod " + k.Pod
		add(Entry{Time: k.Time, What: "OOMKill", Pod: k.Pod, Kill: k, Title: title, Why: k.Summary})
	}
	for i := range s.RecentStalls {
		t := &s.RecentStalls[i]
		add(Entry{Time: t.Time, What: "Stall", Pod: t.Pod, Stall: t, Title: "Stall, pod " + t.Pod, Why: t.Summary})
	}
	slices.SortStableFunc(h.Entries, func(a, b Entry) int { return b.Time.Compare(a.Time.Time) })
	return h
}

// historyColumns are those of the table of -o wide.
var historyColumns = []string{"TIME", "WHAT", "POD", "PODS", "CHANGE", "WHY"}

const nothingRecorded = "no changes, OOM kills or stalls are recorded"

// Print prints it as people or machines asked for it: a page, a line for each entry, or its fields.
func (h *History) Print(w io.Writer, o listing.Options) error {
	if o.Format.IsPage() && !o.NoHeaders {
		return h.Write(w, o.Colors)
	}
	l := listing.List{
		Kind: "WorkloadHistoryList", Columns: historyColumns,
		More: map[string]any{
			"namespace": h.of.Namespace, "workload": h.of.Status.Workload, "applied": h.applied(),
			"oomKills": h.of.Status.OOMKills,
		},
	}
	if len(h.Entries) == 0 {
		l.Notes = nothingRecorded + "\n"
	}
	for i := range h.Entries {
		e := &h.Entries[i]
		pods, change := "1", ""
		if c := e.Change; c != nil {
			pods, change = fmt.Sprint(max(c.Pods, 1)), c.Change
		}
		l.Items = append(l.Items, listing.Item{
			Object: e, Namespace: h.of.Namespace, Name: "pod/" + e.Pod,
			Cells: []string{e.When, e.What, e.Pod, pods, change, e.Why},
		})
	}
	return l.Print(w, o)
}

// Write prints it for people.
func (h *History) Write(w io.Writer, colors listing.Colors) error {
	p := &page{colors: colors}
	p.heading(Title(h.of.Namespace, &h.of.Status))
	if applied := h.applied(); applied.Reason != "" {
		p.item("Now", fmt.Sprintf("Applied is %s (%s): %s", applied.Status, applied.Reason, applied.Message))
	}
	if s := &h.of.Status; s.OOMKills > int64(len(s.RecentOOMKills)) {
		p.item("OOM kills", fmt.Sprintf("%d so far, the last %d are listed", s.OOMKills, len(s.RecentOOMKills)))
	}
	if len(h.Entries) == 0 {
		p.item("History", nothingRecorded)
	}
	p.WriteString("\n")
	for i := range h.Entries {
		e := &h.Entries[i]
		p.hanging("", "    ", e.When+"  "+e.Title)
		if e.Why != "" {
			p.hanging("    ", "    ", e.Why)
		}
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// applied is the condition: the present state.
func (h *History) applied() Finding {
	return finding(h.of.Status.Conditions, v1alpha1.ConditionApplied)
}

func changeTitle(c *v1alpha1.ChangeRecord) string {
	who := "pod " + c.Pod
	if c.Pods > 1 {
		who = fmt.Sprintf("%d pods, the last one %s", c.Pods, c.Pod)
		if c.Since != nil {
			who += ", since " + format.Time(c.Since.Time)
		}
	}
	title := c.Kind + ", " + who
	if c.Change != "" {
		title += ": " + c.Change
	}
	return title
}
