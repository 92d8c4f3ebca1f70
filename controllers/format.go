// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/signals"
)

// quantity is an amount as status shows it: whole MiB from 1Mi up, rounded up, so that noise writes nothing. Nil for 0.
func quantity(b memory.Bytes) *resource.Quantity {
	if b <= 0 {
		return nil
	}
	if b >= memory.MiB {
		b = b.CeilTo(memory.MiB)
	}
	q := b.Quantity()
	return &q
}

// exact is an amount as it is, for sizes that people set.
func exact(b memory.Bytes) *resource.Quantity {
	if b <= 0 {
		return nil
	}
	q := b.Quantity()
	return &q
}

func apiSize(s recommend.Size) v1alpha1.Size { return profile.APISize(s) }

func sameSize(a, b v1alpha1.Size) bool {
	return sameQuantity(a.Limit, b.Limit) && sameQuantity(a.Request, b.Request)
}

func sameQuantity(a, b *resource.Quantity) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Cmp(*b) == 0
}

func apiEvidence(e recommend.Evidence) v1alpha1.Evidence {
	out := v1alpha1.Evidence{
		PeakRSS: quantity(e.PeakRSS), PeakWorkingSet: quantity(e.PeakWorkingSet), Trough: quantity(e.Trough),
		Replicas: int32(min(e.Replicas, 1<<30)), Samples: e.Samples, //nolint:gosec // bounded above
	}
	if e.Window > 0 {
		out.Window = duration(e.Window)
	}
	return out
}

// What a source is followed by in status.
const (
	// workingSetOnly marks a source that cannot tell page cache from demand.
	workingSetOnly = " (working set only)"
	// historyFrom comes before the source of what was used before memfit looked.
	historyFrom = ", history from "
)

// evidenceSource says where usage came from: "kubelet", "metrics-api (working set only)", "kubelet, history from prometheus".
func evidenceSource(source, past string, h *history.Container) string {
	if source == "" && past == "" || h == nil || h.Samples() == 0 {
		return ""
	}
	if source == "" {
		return past
	}
	if h.WorkingSetOnly() {
		source += workingSetOnly
	}
	if past != "" {
		source += historyFrom + past
	}
	return source
}

// sourcesOf undoes evidenceSource.
func sourcesOf(text string) (source, past string) {
	source, past, _ = strings.Cut(text, historyFrom)
	return strings.TrimSuffix(source, workingSetOnly), past
}

func apiShape(s signals.Shape) *v1alpha1.Shape {
	if s.Kind == signals.Unknown && s.Summary == "" {
		return nil
	}
	out := &v1alpha1.Shape{
		Kind: string(s.Kind), Confidence: string(s.Confidence), RatePerDay: quantity(s.RatePerDay), SickPods: head(s.Sick, 5), Summary: s.Summary,
	}
	if s.TimeToLimit[1] > 0 {
		out.TimeToLimit = duration(s.TimeToLimit[0]) + " to " + duration(s.TimeToLimit[1])
	}
	return out
}

// killRecords are the last kills, newest first, and the number of all.
func killRecords(l *signals.Ledger) (int64, []v1alpha1.OOMKillRecord) {
	var total int64
	for _, c := range l.Containers() {
		total += l.Total(c)
	}
	kills := l.All()
	slices.Reverse(kills)
	var records []v1alpha1.OOMKillRecord
	for i := range kills[:min(len(kills), signals.KillsKept)] {
		k := &kills[i]
		records = append(records, v1alpha1.OOMKillRecord{
			Confidence: string(k.Confidence), Container: k.Container.Container, Kind: string(k.Kind), Limit: exact(k.Limit), Peak: quantity(k.Peak),
			Pod: k.Container.Pod, Summary: killSentence(k), Time: metav1.NewTime(k.Time),
		})
	}
	return total, records
}

// kinds are the kinds of kill among the last ones, in a fixed order.
func kinds(kills []memory.OOMKill) []memory.OOMKind {
	var all []memory.OOMKind
	for i := range kills {
		if !slices.Contains(all, kills[i].Kind) {
			all = append(all, kills[i].Kind)
		}
	}
	slices.Sort(all)
	return all
}

// limitColumn is "256Mi", or "app=256Mi,proxy=64Mi" for several containers.
func limitColumn(containers []v1alpha1.ContainerRecommendation) string {
	var parts []string
	for i := range containers {
		if r := containers[i].Recommended; r != nil && r.Limit != nil {
			parts = append(parts, containers[i].Container+"="+memory.FromQuantity(*r.Limit).String())
		}
	}
	if len(containers) == 1 && len(parts) == 1 {
		return strings.TrimPrefix(parts[0], containers[0].Container+"=")
	}
	return strings.Join(parts, ",")
}

// workloadSummary is one line about the workload.
func workloadSummary(s *snapshot, containers []v1alpha1.ContainerRecommendation) string {
	if len(containers) == 0 {
		if s.template == nil {
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

// duration is what people say: "45s", "12m", "3h20m", "24h", "9d4h".
func duration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%s", int(d.Minutes()), remainder(int(d.Seconds())%60, "s"))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%s", int(d.Hours()), remainder(int(d.Minutes())%60, "m"))
	default:
		return fmt.Sprintf("%dd%s", int(d.Hours())/24, remainder(int(d.Hours())%24, "h"))
	}
}

func remainder(n int, unit string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d%s", n, unit)
}

func join(parts []string) string { return strings.Join(parts, ", ") }

// counted is "1 pod", "3 pods".
func counted(n int32, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ofPods is "1 of 3 pods".
func ofPods(n, all int32) string { return fmt.Sprintf("%d of %d pods", n, all) }

func head[T any](list []T, n int) []T { return list[:min(len(list), n)] }

// distinct keeps the first of equal texts.
func distinct(texts []string) []string {
	var kept []string
	for _, t := range texts {
		if t != "" && !slices.Contains(kept, t) {
			kept = append(kept, t)
		}
	}
	return kept
}
