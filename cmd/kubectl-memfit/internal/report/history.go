// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
)

// History is what memfit did to the pods of a workload, among the kills and stalls before and after. -o json and -o
// yaml of `kubectl memfit history` print these fields.
type History struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	// Applied is the condition: how things stand now.
	Applied Finding `json:"applied"`
	// Entries are newest first.
	Entries []Entry `json:"entries"`
}

// Entry is one thing that happened: exactly one of Change, Kill and Stall.
type Entry struct {
	Time   metav1.Time             `json:"time"`
	Change *v1alpha1.ChangeRecord  `json:"change,omitempty"`
	Kill   *v1alpha1.OOMKillRecord `json:"oomKill,omitempty"`
	Stall  *v1alpha1.StallRecord   `json:"stall,omitempty"`
}

// HistoryOf puts what a recommendation keeps in the order of time.
func HistoryOf(rec *v1alpha1.MemoryRecommendation) History {
	s := &rec.Status
	h := History{
		Namespace: rec.Namespace, Kind: rec.Spec.Workload.Kind, Name: rec.Spec.Workload.Name,
		Applied: finding(s.Conditions, v1alpha1.ConditionApplied), Entries: []Entry{},
	}
	for i := range s.RecentChanges {
		h.Entries = append(h.Entries, Entry{Time: s.RecentChanges[i].Time, Change: &s.RecentChanges[i]})
	}
	for i := range s.RecentOOMKills {
		h.Entries = append(h.Entries, Entry{Time: s.RecentOOMKills[i].Time, Kill: &s.RecentOOMKills[i]})
	}
	for i := range s.RecentStalls {
		h.Entries = append(h.Entries, Entry{Time: s.RecentStalls[i].Time, Stall: &s.RecentStalls[i]})
	}
	slices.SortStableFunc(h.Entries, func(a, b Entry) int { return b.Time.Compare(a.Time.Time) })
	return h
}

// Write prints it for people.
func (h *History) Write(w io.Writer, colours Colours) error {
	p := &page{colours: colours}
	p.heading(fmt.Sprintf("%s %s/%s", h.Kind, h.Namespace, h.Name))
	if h.Applied.Reason != "" {
		p.item("Now", fmt.Sprintf("Applied is %s (%s): %s", h.Applied.Status, h.Applied.Reason, h.Applied.Message))
	}
	if len(h.Entries) == 0 {
		p.item("History", "memfit has changed no pod of it, and knows of no OOM kill or stall")
	}
	p.WriteString("\n")
	for i := range h.Entries {
		title, text := h.Entries[i].words()
		p.hanging("", "    ", format.Time(h.Entries[i].Time.Time)+"  "+title)
		if text != "" {
			p.hanging("    ", "    ", text)
		}
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// words are the line that says what happened, and what is to be said of it.
func (e *Entry) words() (title, text string) {
	switch {
	case e.Kill != nil:
		return "OOM kill (" + e.Kill.Kind + "), pod " + e.Kill.Pod, e.Kill.Summary
	case e.Stall != nil:
		return "Stall, pod " + e.Stall.Pod, e.Stall.Summary
	}
	c := e.Change
	who := "pod " + c.Pod
	if c.Pods > 1 {
		who = fmt.Sprintf("%d pods, the last one %s", c.Pods, c.Pod)
		if c.Since != nil {
			who += ", since " + format.Time(c.Since.Time)
		}
	}
	title = c.Kind + ", " + who
	if c.Change != "" {
		title += ": " + c.Change
	}
	return title, c.Why
}
