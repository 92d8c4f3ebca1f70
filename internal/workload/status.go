// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/report"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/shape"
)

func apiEvidence(e recommend.Evidence) v1alpha1.Evidence {
	return v1alpha1.Evidence{
		PeakDemand: format.Quantity(e.PeakDemand), PeakRSS: format.Quantity(e.PeakRSS), PeakSwap: format.Quantity(e.PeakSwap),
		PeakWorkingSet: format.Quantity(e.PeakWorkingSet), LiveSetMedian: format.Quantity(e.Trough),
		Samples: e.Samples, WindowSeconds: int64(e.Window.Seconds()),
	}
}

// certainties maps the certainty of demand to the API's spelling. It omits unknown.
var certainties = map[history.Certainty]string{
	history.Exact: "Exact", history.RSSOnly: "RSSOnly", history.WorkingSetOnly: "WorkingSetOnly",
}

func setSources(e *v1alpha1.Evidence, source, past string, h *history.Container) {
	if h == nil || h.Samples() == 0 {
		return
	}
	e.Source, e.HistorySource, e.Certainty = source, past, certainties[h.Certainty(period.Day.Duration())]
}

func apiShape(s shape.Shape) *v1alpha1.Shape {
	if s.Kind == shape.Unknown && s.Summary == "" {
		return nil
	}
	out := &v1alpha1.Shape{
		Kind: string(s.Kind), Confidence: string(s.Confidence), RatePerDay: format.Quantity(s.RatePerDay),
		OutlierPods: head(s.Outliers, 5), Summary: s.Summary,
	}
	if s.TimeToLimit[1] > 0 {
		out.TimeToLimitMinSeconds = int64(s.TimeToLimit[0].Seconds())
		out.TimeToLimitMaxSeconds = int64(s.TimeToLimit[1].Seconds())
	}
	return out
}

// killRecords returns the total number of kills and the records of the last ones, newest first.
func killRecords(l *oom.Ledger) (int64, []v1alpha1.OOMKillRecord) {
	total, _ := l.Totals()
	kills := l.All()
	slices.Reverse(kills)
	var records []v1alpha1.OOMKillRecord
	for i := range kills[:min(len(kills), oom.KillsKept)] {
		k := &kills[i]
		if !k.Kind.Killed() || !k.Confidence.Known() { // the API server would refuse the whole status
			continue
		}
		records = append(records, v1alpha1.OOMKillRecord{
			Confidence: string(k.Confidence), Container: k.Container.Container, Kind: string(k.Kind),
			Limit: format.Exact(k.Limit), Peak: format.Quantity(k.Peak),
			Pod: k.Container.Pod, Summary: report.Kill(k), Time: metav1.NewTime(k.Time),
		})
	}
	return total, records
}

func changeRecords(s *rollout.State) (records []v1alpha1.ChangeRecord) {
	for _, c := range slices.Backward(s.Changes) {
		if c = c.Bounded(); !c.Kind.Known() { // the API server would refuse the whole status
			continue
		}
		r := v1alpha1.ChangeRecord{
			Change: c.Sizes, Kind: string(c.Kind), Pod: c.Pod, Pods: int32(min(c.Pods, 1<<30)), //nolint:gosec // bounded
			Time: metav1.NewTime(c.At), Why: c.Why, Sizes: sizeChanges(c.From, c.To),
		}
		if c.Pods > 1 {
			r.Since = &metav1.Time{Time: c.Since}
		}
		records = append(records, r)
	}
	return records
}

// sizeChanges returns the changes of sizes by container name; [rollout.WholePod] is the pod-level size.
func sizeChanges(from, to map[string]memory.Size) (all []v1alpha1.SizeChange) {
	for _, name := range slices.Sorted(maps.Keys(to)) {
		f, t := from[name], to[name]
		all = append(all, v1alpha1.SizeChange{
			Container: name, From: v1alpha1.Size{Request: format.Exact(f.Request), Limit: format.Exact(f.Limit)},
			To: v1alpha1.Size{
				Request: format.Exact(cmp.Or(t.Request, f.Request)), Limit: format.Exact(cmp.Or(t.Limit, f.Limit)),
			},
		})
	}
	return all
}

// killKinds returns the distinct kinds of the kills at a limit, sorted.
func killKinds(kills []memory.OOMKill) []memory.OOMKind {
	var all []memory.OOMKind
	for i := range kills {
		if !nodeRanOut(kills[i]) && !slices.Contains(all, kills[i].Kind) {
			all = append(all, kills[i].Kind)
		}
	}
	slices.Sort(all)
	return all
}

// nodeRanOut reports whether the kernel killed a container that had reached no limit.
func nodeRanOut(k memory.OOMKill) bool {
	return k.Unreached > 0 || k.Kind == memory.OOMMainProcess && k.Limit == 0
}

func recommendedLimit(c *v1alpha1.ContainerRecommendation) *resource.Quantity {
	if c.Recommended == nil {
		return nil
	}
	return c.Recommended.Limit
}

func currentLimit(c *v1alpha1.ContainerRecommendation) *resource.Quantity { return c.Current.Limit }

// limitColumn returns "256Mi", or "app=256Mi,proxy=64Mi" for several containers.
func limitColumn(
	containers []v1alpha1.ContainerRecommendation, column func(*v1alpha1.ContainerRecommendation) *resource.Quantity,
) string {
	var parts []string
	for i := range containers {
		if limit := column(&containers[i]); limit != nil {
			parts = append(parts, containers[i].Container+"="+memory.FromQuantity(*limit).String())
		}
	}
	if len(containers) == 1 && len(parts) == 1 {
		return strings.TrimPrefix(parts[0], containers[0].Container+"=")
	}
	return strings.Join(parts, ",")
}

func workloadSummary(s *Snapshot, containers []v1alpha1.ContainerRecommendation) string {
	if len(containers) == 0 {
		if s.Template == nil {
			return "No pod was seen yet"
		}
		return "The profile ignores every container of this workload"
	}
	var parts []string
	for i := range containers {
		text := containers[i].Summary
		if len(containers) > 1 {
			text = containers[i].Container + ": " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func head[T any](list []T, n int) []T { return list[:min(len(list), n)] }

// distinct returns texts without empty texts and duplicates.
func distinct(texts []string) []string {
	var kept []string
	for _, t := range texts {
		if t != "" && !slices.Contains(kept, t) {
			kept = append(kept, t)
		}
	}
	return kept
}

// coverage counts governed pods by whether they have the profile's current settings.
type coverage struct {
	v1alpha1.Coverage
	outOfDate string // what one stale or missed pod lacks; empty: no such pod
	outOfStep string // the settings of a resized pod that do not match its limit; empty: no such pod
}

// reasonMax bounds skippedReason in bytes, as in the API.
const reasonMax = 1024

func countCoverage(s *Snapshot, observed map[string]inject.Observed, plans *plans) coverage {
	var c coverage
	var state inject.State
	var why string
	for i, pod := range s.Governed {
		c.Governed++
		if i == 0 || !alike(pod, s.Governed[i-1]) {
			state, why = plans.of(s, pod, observed).StateOf(pod)
		}
		switch state {
		case inject.UpToDate:
			c.Injected++
		case inject.Stale:
			c.Stale++
			c.outOfDate = cmp.Or(c.outOfDate, "pod "+pod.Name+": "+why)
			if inject.WasResized(pod) && inject.LimitMoved(pod, s.Profile) { // a resize keeps the environment
				c.outOfStep = cmp.Or(c.outOfStep, "Pod "+pod.Name+" was resized in place: "+why+
					"; only a new pod gets it: delete this one at a convenient time")
			}
		case inject.NotInjected:
			c.Missed++
			c.outOfDate = cmp.Or(c.outOfDate, "pod "+pod.Name+": "+why)
		case inject.Skipped:
			c.Skipped++
			c.SkippedReason = cmp.Or(c.SkippedReason, quote.Cut("pod "+pod.Name+": "+why, reasonMax))
		case inject.Disabled: // counts only as governed
		}
	}
	return c
}

// plans caches the last plan of a running pod, because most pods have equal plans.
type plans struct {
	pod      *corev1.Pod
	observed map[string]inject.Observed
	plan     inject.Plan
}

// of returns the result of [inject.OfRunning] for a pod.
func (p *plans) of(s *Snapshot, pod *corev1.Pod, observed map[string]inject.Observed) inject.Plan {
	if p.pod == nil || !alike(pod, p.pod) || !maps.Equal(observed, p.observed) {
		p.observed, p.plan = observed, inject.OfRunning(pod, s.Profile, observed)
	}
	p.pod = pod
	return p.plan
}

// alike reports whether two pods certainly have equal plans. It compares addresses, because cached replicas share the
// memory of their template (see internal/informers). It may return false for equal pods.
func alike(a, b *corev1.Pod) bool {
	return shareList(a.Spec.Containers, b.Spec.Containers) && shareList(a.Spec.InitContainers, b.Spec.InitContainers) &&
		shareList(a.Spec.Volumes, b.Spec.Volumes) &&
		a.Spec.Resources == nil && b.Spec.Resources == nil && a.Spec.OS == nil && b.Spec.OS == nil &&
		a.Spec.RestartPolicy == b.Spec.RestartPolicy &&
		maps.Equal(a.Annotations, b.Annotations)
}

func shareList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
