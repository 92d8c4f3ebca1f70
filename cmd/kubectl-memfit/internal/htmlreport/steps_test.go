// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package htmlreport

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/golden"
)

// TestLimitsOverTime: what memfit changed, and what kills and stalls show of the time before.
func TestLimitsOverTime(t *testing.T) {
	const mib = memory.MiB
	resized := func(kind string, hours time.Duration, from, to string) v1alpha1.ChangeRecord {
		return v1alpha1.ChangeRecord{Kind: kind, Time: ago(hours), Sizes: []v1alpha1.SizeChange{
			{Container: "other", From: v1alpha1.Size{Limit: quantity("1Gi")}, To: v1alpha1.Size{Limit: quantity("2Gi")}},
			{Container: "app", From: v1alpha1.Size{Limit: quantity(from)}, To: v1alpha1.Size{Limit: quantity(to)}},
		}}
	}
	kill := func(hours time.Duration, limit string) v1alpha1.OOMKillRecord {
		return v1alpha1.OOMKillRecord{Container: "app", Time: ago(hours), Limit: quantity(limit)}
	}
	for name, tc := range map[string]struct {
		status v1alpha1.MemoryRecommendationStatus
		now    memory.Bytes
		want   string
	}{
		"nothing is known of the time before": {now: 256 * mib, want: "256Mi"},
		"two changes, the newest first": {
			status: v1alpha1.MemoryRecommendationStatus{RecentChanges: []v1alpha1.ChangeRecord{
				resized("Reverted", 2, "128Mi", "192Mi"), resized("Resized", 20, "192Mi", "128Mi"),
			}},
			now: 192 * mib, want: "192Mi, before Mon 14:00 128Mi, before Sun 20:00 192Mi",
		},
		"a resize that did not take effect": {
			status: v1alpha1.MemoryRecommendationStatus{
				RecentChanges: []v1alpha1.ChangeRecord{resized("NotResized", 2, "128Mi", "192Mi")},
			},
			now: 128 * mib, want: "128Mi",
		},
		"the owner changed it after a kill, and memfit later": {
			status: v1alpha1.MemoryRecommendationStatus{
				RecentOOMKills: []v1alpha1.OOMKillRecord{kill(1, "256Mi"), kill(24, "64Mi")},
				RecentChanges:  []v1alpha1.ChangeRecord{resized("Replaced", 2, "128Mi", "192Mi")},
			},
			now: 192 * mib, want: "192Mi, before Mon 14:00 128Mi, before Sun 16:00 64Mi",
		},
		"the owner took it away": {
			status: v1alpha1.MemoryRecommendationStatus{RecentStalls: []v1alpha1.StallRecord{
				{Container: "app", Time: ago(3), Limit: *quantity("64Mi")},
			}},
			now: 0, want: "none, before Mon 13:00 64Mi",
		},
	} {
		if got := limitsOf("app", &tc.status, tc.now).lastAmounts(format.Hour); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestChart: a chart as it is drawn, with steps, marks and times that do not touch each other.
func TestChart(t *testing.T) {
	page := made(t, &Input{
		Place: "namespace shop", Now: now, Recommendations: []v1alpha1.MemoryRecommendation{recommendation("web")},
		Histories: map[types.NamespacedName]map[string]*history.Container{deploymentWeb: {"app": used()}},
	})
	_, charts, _ := strings.Cut(page, `<div class="charts">`)
	charts, _, _ = strings.Cut(charts, "</div>")
	golden.Check(t, "chart.html", charts)
}

// TestTimesDoNotCollide: whatever a chart covers, its times are as far apart as the largest letters need.
func TestTimesDoNotCollide(t *testing.T) {
	for hours := 1; hours < 40*24; hours += 7 {
		for _, a := range []axis{{24 * time.Hour, format.Day}, {6 * time.Hour, format.Hour}} {
			last := -tickWidth / 2.
			for _, one := range ticks(&scale{from: now.Add(-time.Duration(hours) * time.Hour), to: now}, a) {
				if one.At-last < tickWidth || one.At > chartWidth-tickWidth/2 {
					t.Errorf("%d h: %q at %.1f after %.1f", hours, one.Text, one.At, last)
				}
				last = one.At
			}
		}
	}
}
