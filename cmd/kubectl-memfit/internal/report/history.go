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

// History lists memfit's changes to the pods of a workload, and the OOM kills and stalls of the pods.
type History struct {
	Namespace string                     `json:"namespace"`
	Workload  v1alpha1.WorkloadReference `json:"workload"`
	Applied   metav1.Condition           `json:"applied,omitzero"`
	OOMKills  int64                      `json:"oomKills"`
	// Entries are newest first.
	Entries []Entry `json:"items"`

	status *v1alpha1.MemoryRecommendationStatus
}

// Entry is an item of `kubectl memfit history -o json`. It has exactly one of Change, Kill and Stall.
type Entry struct {
	Time metav1.Time `json:"time"`
	// What is "OOMKill", "Stall" or the kind of the change.
	What string `json:"what"`
	// Pod is the pod, or the last pod of several.
	Pod    string                  `json:"pod"`
	Change *v1alpha1.ChangeRecord  `json:"change,omitempty"`
	Kill   *v1alpha1.OOMKillRecord `json:"oomKill,omitempty"`
	Stall  *v1alpha1.StallRecord   `json:"stall,omitempty"`
	// When, Title and Why are texts for users: the time, the heading of the entry, and the text below the heading.
	When, Title, Why string `json:"-"`
}

// HistoryOf returns the history of a workload.
func HistoryOf(rec *v1alpha1.MemoryRecommendation) History {
	s := &rec.Status
	return History{
		Namespace: rec.Namespace, Workload: s.Workload, Applied: conditionOf(s, v1alpha1.ConditionApplied),
		OOMKills: s.OOMKills, Entries: EntriesOf(s), status: s,
	}
}

// EntriesOf returns the entries of a history, newest first.
func EntriesOf(s *v1alpha1.MemoryRecommendationStatus) []Entry {
	all := []Entry{}
	add := func(e Entry) {
		e.When = format.Time(e.Time.Time)
		all = append(all, e)
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
	slices.SortStableFunc(all, func(a, b Entry) int { return b.Time.Compare(a.Time.Time) })
	return all
}

// Write prints a history for users.
func (h *History) Write(w io.Writer, colors listing.Colors) error {
	p := &page{colors: colors}
	p.heading(Title(h.Namespace, h.status))
	if applied := &h.Applied; applied.Reason != "" {
		p.item("Now", fmt.Sprintf("Applied is %s (%s): %s", applied.Status, applied.Reason, applied.Message))
	}
	if s := h.status; s.OOMKills > int64(len(s.RecentOOMKills)) {
		p.item("OOM kills", fmt.Sprintf("%d so far, the last %d are listed", s.OOMKills, len(s.RecentOOMKills)))
	}
	if len(h.Entries) == 0 {
		p.item("History", "no changes, OOM kills or stalls are recorded")
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
