// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/levers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/runtimes"
)

// Why describes one pod's memory and memfit's actions on its workload. `kubectl memfit why -o json` prints the fields.
type Why struct {
	Namespace string `json:"namespace"`
	// Pod is the name of the pod; absent without a snapshot.
	Pod string `json:"pod,omitempty"`
	// Snapshot is the pod's snapshot; if it is absent, Workload is set.
	Snapshot *v1alpha1.MemorySnapshotStatus `json:"seen,omitempty"`
	// Workload explains the pod's workload; absent if no profile governs the workload.
	Workload *Explanation `json:"workload,omitempty"`
}

// WhyOf describes a pod by its snapshot and the recommendation of its workload. One of them may be nil.
func WhyOf(s *v1alpha1.MemorySnapshot, rec *v1alpha1.MemoryRecommendation) Why {
	var w Why
	if rec != nil {
		e := Explain(rec, nil)
		w.Namespace, w.Workload = rec.Namespace, &e
	}
	if s != nil {
		w.Namespace, w.Pod, w.Snapshot = s.Namespace, s.Name, &s.Status
	}
	return w
}

// OfRecord returns the recommendation that records a kill or stall of a pod without an owner; nil: none or several.
func OfRecord(recs []v1alpha1.MemoryRecommendation, pod string) *v1alpha1.MemoryRecommendation {
	found := matching(recs, func(rec *v1alpha1.MemoryRecommendation) bool { return recordsPod(&rec.Status, pod) })
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

func recordsPod(s *v1alpha1.MemoryRecommendationStatus, pod string) bool {
	return slices.ContainsFunc(s.RecentOOMKills, func(k v1alpha1.OOMKillRecord) bool { return k.Pod == pod }) ||
		slices.ContainsFunc(s.RecentStalls, func(r v1alpha1.StallRecord) bool { return r.Pod == pod })
}

// Write prints what happened to the pod, what filled its containers, what memfit did, and what to do next.
func (w *Why) Write(out io.Writer, colors listing.Colors) error {
	p := &page{colors: colors}
	if w.Snapshot != nil {
		p.pod(w)
	} else {
		p.recorded(w.Workload)
	}
	w.actions(p)
	p.section("What to do next", w.next())
	_, err := io.WriteString(out, p.String())
	return err
}

func (p *page) pod(w *Why) {
	p.heading(fmt.Sprintf("Pod %s/%s", w.Namespace, w.Pod))
	p.item("Node", fmt.Sprintf("%s, read by its agent (tier %s, cgroup %s) at %s", w.Snapshot.NodeName, w.Snapshot.Tier,
		w.Snapshot.CgroupVersion, format.Time(w.Snapshot.ObservedTime.Time)))
	if w.Snapshot.PodLimit != nil {
		p.item("Pod limit", fmt.Sprintf("%s, of which %s are used", Amount(w.Snapshot.PodLimit), Amount(w.Snapshot.PodUsage)))
	}
	for i := range w.Snapshot.Containers {
		p.seen(&w.Snapshot.Containers[i])
	}
}

// recorded prints what the recommendation records about the pods.
func (p *page) recorded(e *Explanation) {
	p.heading(Title(e.Namespace, e.Status))
	for i := range e.Status.Containers {
		c := &e.Status.Containers[i]
		p.heading("Container " + c.Container)
		p.item("Runtime", c.Runtime)
		p.item("Evidence", evidence(&c.Evidence))
		p.list("Filled by", c.Breakdown)
		p.list("Would help", c.Suggestions)
	}
	p.kills(e.Status)
	p.stalls(e.Status)
}

func (p *page) seen(c *v1alpha1.ContainerSnapshot) {
	p.heading("Container " + c.Container)
	if r := c.Runtime; r != nil {
		p.item("Runtime", RuntimeOf(r))
		p.list("Settings", r.Flags)
	}
	if c.Usage != nil {
		p.item("Now", fmt.Sprintf("uses %s%s, of which %s cannot be reclaimed", Amount(c.Usage), limitOf(c.Limit),
			Amount(c.Demand)))
	}
	filled := c.Memory
	if k := c.LastKill; k != nil {
		p.item("OOM kill", format.Time(k.Time.Time)+": "+k.Summary)
		p.item("Before", curve(k.Series))
		filled = cmp.Or(k.Memory, filled)
	} else {
		p.item("OOM kill", "none observed")
	}
	if s := c.LastStall; s != nil {
		p.item("Stalled", stalled(s))
		p.item("Limits", stallLimits(s))
		p.item("Before", curve(s.Series))
		if c.LastKill == nil && s.Ended != nil { // during a stall, the current parts are newer
			filled = cmp.Or(s.Memory, filled)
		}
	}
	p.filled(filled, c)
}

// RuntimeOf describes a detected runtime on one line: "Node.js 20.18.1, glibc 2.36"; empty for nil.
func RuntimeOf(r *v1alpha1.InspectedRuntime) string {
	if r == nil {
		return ""
	}
	runs := strings.TrimSpace(runtimes.TitleOf(r.Type) + " " + r.Version)
	return quote.Plain(strings.Join(distinct([]string{runs, r.Libc}), ", "))
}

func limitOf(q *resource.Quantity) string {
	if q == nil {
		return " without a limit"
	}
	return " of a limit of " + Amount(q)
}

func stalled(s *v1alpha1.StallSnapshot) string {
	when := "since " + format.Time(s.Started.Time)
	if s.Ended != nil {
		when = "from " + format.Time(s.Started.Time) + " to " + format.Time(s.Ended.Time)
	}
	return when + " it " + s.Summary
}

// stallLimits lists the effective limits during a stall. It is empty if the agent did not record them.
func stallLimits(s *v1alpha1.StallSnapshot) string {
	var limits []string
	for _, l := range []struct {
		of    string
		limit *resource.Quantity
	}{{"memory.high", s.High}, {"the container", s.ContainerLimit}, {"the pod", s.PodLimit}} {
		if l.limit != nil {
			limits = append(limits, Amount(l.limit)+" of "+l.of)
		}
	}
	return strings.Join(limits, ", ")
}

func (p *page) filled(m *v1alpha1.MemoryParts, c *v1alpha1.ContainerSnapshot) {
	if m == nil {
		p.item("Filled by", "unknown: "+NotInspected(c))
		return
	}
	processes := "one process"
	if m.Processes != 1 {
		processes = fmt.Sprintf("%d processes", m.Processes)
	}
	lines := []string{
		fmt.Sprintf("%s resident at %s, in %s", Amount(&m.Resident), format.Time(m.Time.Time), processes),
	}
	for i := range m.Parts {
		part := &m.Parts[i]
		text := fmt.Sprintf("%s %s", Amount(&part.Resident), part.Name)
		if part.Free != nil && !part.Free.IsZero() {
			text += fmt.Sprintf(", of which %s free", Amount(part.Free))
		}
		lines = append(lines, text)
	}
	lines = append(lines, Amount(&m.Unexplained)+" unexplained")
	p.list("Filled by", lines)
	if m == c.Memory { // not the memory at the kill
		p.item("Retained", retained(m, c.Peak))
	}
	p.list("Would help", savings(m))
}

// retained describes memory that the program has freed and the allocator retains. It is empty for small amounts.
func retained(m *v1alpha1.MemoryParts, peak *resource.Quantity) string {
	var free memory.Bytes
	for i := range m.Parts {
		if part := &m.Parts[i]; part.Name == v1alpha1.PartArenas && part.Free != nil {
			free = memory.FromQuantity(*part.Free)
		}
	}
	if resident := memory.FromQuantity(m.Resident); free < levers.Worth(resident) {
		return ""
	}
	highest := ""
	if peak != nil {
		highest = ", after a peak of " + Amount(peak)
	}
	return fmt.Sprintf("%s of it remains after a load: the program has freed it%s, and glibc retains it for the next "+
		"one", free, highest)
}

// savings lists the actions that would reduce resident memory, and how each amount was computed.
func savings(m *v1alpha1.MemoryParts) []string {
	lines := []string{m.Summary}
	for i := range m.Savings {
		s := &m.Savings[i]
		prediction := levers.Prediction{
			Action: s.Action, Why: s.Method, How: s.How, Least: Bytes(&s.Amount), Most: Bytes(cmp.Or(s.AtMost, &s.Amount)),
		}
		lines = append(lines, prediction.String())
	}
	return distinct(lines)
}

// NotInspected returns why a container's parts are unknown, and when they will be known.
func NotInspected(c *v1alpha1.ContainerSnapshot) string {
	switch {
	case c.Inspection == v1alpha1.InspectionNotEnabled:
		return "the agent runs at tier Watch; tier See inspects processes (config/agent/see)"
	case c.Inspection == v1alpha1.InspectionDeclined:
		return "the pod has " + v1alpha1.InspectAnnotation + `: "false"`
	case c.InspectionMessage != "":
		return "its processes could not be inspected: " + c.InspectionMessage
	}
	return "not inspected yet: " + FirstInspection
}

// FirstInspection and NoSnapshot are reasons why the memory of a container or pod is unknown (docs/guide/agent.md).
const (
	FirstInspection = "the agent inspects a container 10 s after its start, or minutes later on a node with many new " +
		"containers; to inspect it now: kubectl annotate pod POD --overwrite " + v1alpha1.InspectAnnotation + `="$(date)"`
	NoSnapshot = "no snapshot: no agent runs on its node, or the pod is new (an agent writes the first snapshot 30 to " +
		"90 s after the start of a pod, within 5 min on a node with many new pods)"
)

// levels are the heights of a curve, from lowest to highest.
var levels = []rune("▁▂▃▄▅▆▇█")

// curve draws a series as one line of text.
func curve(series []v1alpha1.UsagePoint) string {
	if len(series) < 2 {
		return ""
	}
	highest := slices.MaxFunc(series, func(a, b v1alpha1.UsagePoint) int { return a.Usage.Cmp(b.Usage) })
	var b strings.Builder
	for i := range series {
		share := float64(series[i].Usage.Value()) / max(float64(highest.Usage.Value()), 1)
		b.WriteRune(levels[min(int(max(share, 0)*float64(len(levels))), len(levels)-1)])
	}
	first, last := series[0], series[len(series)-1]
	return fmt.Sprintf("%s  %s to %s in the last %d s, denser towards the end", b.String(), Amount(&first.Usage),
		Amount(&last.Usage), first.MillisecondsBefore/1000)
}

func (w *Why) actions(p *page) {
	e := w.Workload
	if e == nil {
		p.section("What memfit did", []string{
			"Nothing: no profile governs the workload. To opt in, add the annotation " + v1alpha1.ProfileAnnotation +
				" to the workload",
		})
		return
	}
	name, by := cmp.Or(identityTitle(e.Status), e.Kind+" "+e.Name), e.Status.Profile
	lines := []string{fmt.Sprintf("%s, by %s %s: %s", name, by.Kind, by.Name, e.Status.Summary)}
	for i := range e.Status.Containers {
		c := &e.Status.Containers[i]
		lines = append(lines, "Container "+c.Container+": "+decision(c))
	}
	for i := range e.Status.RecentChanges {
		c := &e.Status.RecentChanges[i]
		switch c.Kind {
		case v1alpha1.EventMemoryLoaned, v1alpha1.EventLoanReturned, v1alpha1.EventNotResized:
			if c.Pod != w.Pod {
				continue
			}
			lines = append(lines, fmt.Sprintf("%s at %s: %s", c.Kind, format.Time(c.Time.Time), cmp.Or(c.Change, c.Why)))
		}
	}
	if applied := e.condition(v1alpha1.ConditionApplied); applied.Message != "" {
		lines = append(lines, fmt.Sprintf("Applied is %s (%s): %s", applied.Status, applied.Reason, applied.Message))
	}
	p.section("What memfit did", lines)
}

func (w *Why) next() []string {
	var steps []string
	if w.Workload != nil {
		steps = append(steps, w.Workload.Next...)
	}
	if w.Snapshot == nil {
		return steps
	}
	for i := range w.Snapshot.Containers {
		c := &w.Snapshot.Containers[i]
		if c.LastKill != nil && c.LastKill.Kind == "ChildProcess" {
			steps = append(steps, c.Container+": a child process was OOM-killed and the container continued; its status and "+
				"events do not show this kill: check the container's log for errors of that process")
		}
		if m := c.Memory; m != nil && m.Summary != "" {
			steps = append(steps, c.Container+": "+m.Summary)
		}
		if r := c.Runtime; r != nil && r.ContainerAware == "No" && w.Workload == nil && len(r.Flags) == 0 {
			steps = append(steps, fmt.Sprintf("%s: this version of %s sizes its heap by the memory of the node, not by the "+
				"limit: set the heap size with a profile", c.Container, r.Type))
		}
	}
	return steps
}
