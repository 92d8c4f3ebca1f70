// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package htmlreport

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/inventory"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

var keep = flag.String("keep", "", "write the page of the test to this file, to look at it in a browser")

// deploymentWeb is the name of a recommendation.
var deploymentWeb = types.NamespacedName{Namespace: "shop", Name: "deployment-web"}

var now = time.Date(2026, 11, 23, 16, 20, 0, 0, time.UTC)

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

// used is a history of three weeks: 100 MiB, at noon 60 more, and since two days 120 more.
func used() *history.Container {
	h := history.New()
	ref := memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "u", Container: "app"}
	for at := now.Add(-21 * 24 * time.Hour); at.Before(now); at = at.Add(10 * time.Minute) {
		use := 100 * memory.MiB
		if at.Hour() == 12 {
			use += 60 * memory.MiB
		}
		if now.Sub(at) < 48*time.Hour {
			use += 120 * memory.MiB
		}
		h.Add(memory.Sample{Container: ref, Time: at, RSS: use, HasRSS: true, WorkingSet: use}, 256*memory.MiB)
	}
	return h
}

func ago(hours time.Duration) metav1.Time { return metav1.NewTime(now.Add(-hours * time.Hour)) }

func recommendation(name string) v1alpha1.MemoryRecommendation {
	return v1alpha1.MemoryRecommendation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployment-" + name},
		Status: v1alpha1.MemoryRecommendationStatus{
			Profile:  v1alpha1.ProfileReference{Kind: "MemoryProfile", Name: "web"},
			Workload: v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			Summary:  "Increase limit 256Mi to 384Mi: <b>OOM-killed</b> & restarted",
			Coverage: &v1alpha1.Coverage{Governed: 3}, OOMKills: 2,
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionOOMObserved, Status: metav1.ConditionTrue}},
			Containers: []v1alpha1.ContainerRecommendation{{
				Container: "app", Usage: quantity("230Mi"),
				Current:     v1alpha1.Size{Request: quantity("256Mi"), Limit: quantity("256Mi")},
				Recommended: &v1alpha1.Size{Request: quantity("224Mi"), Limit: quantity("384Mi")},
				Suggestions: []string{"GOMEMLIMIT: nothing (a limit higher by 64Mi would save 25 % or more)"},
			}},
			RecentOOMKills: []v1alpha1.OOMKillRecord{
				{Container: "app", Kind: "MainProcess", Pod: "web-1", Limit: quantity("256Mi"), Time: ago(3)},
				{Container: "other", Kind: "MainProcess", Pod: "web-1", Time: ago(4)},
				{Container: "app", Kind: "MainProcess", Pod: "web-1", Time: ago(90 * 24)},
			},
			RecentStalls: []v1alpha1.StallRecord{
				{Container: "app", Pod: "web-1", Limit: resource.MustParse("256Mi"), Time: ago(26)},
			},
			RecentChanges: []v1alpha1.ChangeRecord{
				{
					Kind: "Resized", Pod: "web-1", Pods: 1, Change: "limit 192Mi to 256Mi", Time: ago(30),
					Sizes: []v1alpha1.SizeChange{{
						Container: "app", From: v1alpha1.Size{Limit: quantity("192Mi"), Request: quantity("128Mi")},
						To: v1alpha1.Size{Limit: quantity("256Mi"), Request: quantity("256Mi")},
					}},
				},
			},
		},
	}
}

func made(t *testing.T, in *Input) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, in); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPage(t *testing.T) {
	calm := recommendation("calm")
	calm.Status = v1alpha1.MemoryRecommendationStatus{
		Profile: calm.Status.Profile, Workload: calm.Status.Workload,
		Coverage: &v1alpha1.Coverage{Governed: 10},
		Containers: []v1alpha1.ContainerRecommendation{{
			Container: "app", Current: v1alpha1.Size{Request: quantity("1Gi")},
			Recommended: &v1alpha1.Size{Request: quantity("512Mi")},
		}},
	}
	in := &Input{
		Place: "namespace shop of production", Now: now, PricePerGiBMonth: 3, Currency: "EUR",
		Recommendations: []v1alpha1.MemoryRecommendation{calm, recommendation("web")},
		Histories:       map[types.NamespacedName]map[string]*history.Container{deploymentWeb: {"app": used()}},
	}
	page := made(t, in)
	if *keep != "" {
		if err := os.WriteFile(*keep, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		"&lt;b&gt;OOM-killed&lt;/b&gt; &amp; restarted", // nothing of the cluster is markup
		"<dd class=\"value\">5.1Gi</dd>",                // 10 pods of 1Gi, 3 of 256Mi, less 10 of 512Mi and 3 of 32Mi
		"requests above recommendations: 15.28 EUR a month",
		"OOM-killed recently", "OOM kill (MainProcess) at 256Mi", "stalled at 256Mi", "Resized limit 192Mi to 256Mi",
		"recommended limit 384Mi", "app: daily peaks", "app: hourly peaks",
		"Hourly peaks of container app from 2026-11-21T17:00:00Z on, the highest 280Mi. " +
			"Limit 256Mi, before Sun 10:00 192Mi. Request 256Mi, before Sun 10:00 128Mi. " +
			"Recommended limit 384Mi. Recommended request 224Mi. 1 OOM kill. 1 stall. 1 change.",
		`<li>app: GOMEMLIMIT: nothing (a limit higher by 64Mi would save 25 % or more)</li>`,
		`<th scope="row"><a href="#shop%2fdeployment-web">`, `<article id="shop/deployment-web">`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	if web, other := strings.Index(page, "shop/web"), strings.Index(page, "shop/calm"); web > other {
		t.Error("a workload that was OOM-killed recently comes after one that was not")
	}
	if n := strings.Count(page, `class="mark kill"`); n != 2 {
		t.Errorf("%d kills are drawn, want the one of this container and time in each of two charts", n)
	}
	if found := regexp.MustCompile(`(?i)(https?:|src=|<script|@import|url\()`).FindString(page); found != "" {
		t.Errorf("the page refers to something outside: %s", found)
	}
	wellFormed(t, page)
}

// wellFormed: every element is closed, so that a browser shows it as it was meant.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = true, xml.HTMLAutoClose, xml.HTMLEntity // <br> stands alone
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestSavings: the page has the sum of memfit's changes with a sign, in money, and without failed or unknown ones.
func TestSavings(t *testing.T) {
	for name, tc := range map[string]struct {
		savings     map[types.NamespacedName]inventory.Difference
		value, text string
		cell        string
	}{
		"less": {
			map[types.NamespacedName]inventory.Difference{deploymentWeb: {Less: 2 * memory.GiB}},
			"2Gi", "compared with the owners' requests: 6.00 EUR a month", "2Gi",
		},
		"more": {
			map[types.NamespacedName]inventory.Difference{deploymentWeb: {Less: memory.GiB, More: 3 * memory.GiB, Unknown: 1}},
			"−2Gi", "compared with the owners' requests, 1Gi lower and 3Gi higher: −6.00 EUR a month; without 1 pod " +
				"whose owner's request is unknown",
			"−2Gi",
		},
		"less, and killed": {
			map[types.NamespacedName]inventory.Difference{deploymentWeb: {Failed: 2}}, "–",
			"no lower request succeeded; without 2 pods OOM-killed, stalled or rolled back after a decrease", "–",
		},
		"nothing": {map[types.NamespacedName]inventory.Difference{}, "–", "memfit changed no request of these pods", "–"},
	} {
		page := made(t, &Input{
			Now: now, PricePerGiBMonth: 3, Currency: "EUR", Savings: tc.savings,
			Recommendations: []v1alpha1.MemoryRecommendation{recommendation("web")},
		})
		card := `<dt>Saved so far</dt><dd class="value">` + tc.value + `</dd><dd class="faint">` +
			strings.ReplaceAll(tc.text, "'", "&#39;") + "</dd>"
		if !strings.Contains(page, card) || !strings.Contains(page, "<td>"+tc.cell+"</td><td>2</td>") {
			t.Errorf("%s: want %s in %s", name, card, page)
		}
		wellFormed(t, page)
	}
	page := made(t, &Input{Now: now, Recommendations: []v1alpha1.MemoryRecommendation{recommendation("web")}})
	if strings.Contains(page, "Saved so far") {
		t.Error("the page has savings that are unknown")
	}
}

// TestIdentity: pods without a lasting owner are a row with what they have in common.
func TestIdentity(t *testing.T) {
	row := func(kind, name string, is *v1alpha1.PodIdentity) report.Row {
		var rec v1alpha1.MemoryRecommendation
		rec.Status.Workload, rec.Status.Identity = v1alpha1.WorkloadReference{Kind: kind, Name: name}, is
		return report.Rows([]v1alpha1.MemoryRecommendation{rec})[0]
	}
	build := &v1alpha1.PodIdentity{Platform: "tekton", Values: []string{"build", "unit"}}
	w := workloadOf(row("PodIdentity", "tekton-build-unit-4b2f", build), "ci/podidentity-x")
	if w.Kind != "tekton" || w.Name != "build/unit" {
		t.Errorf("the row is %s %s", w.Kind, w.Name)
	}
	class := &v1alpha1.PodIdentity{Platform: "nodeclass", Values: []string{"log", "m5.large"}}
	if w := workloadOf(row("DaemonSet", "log", class), "x"); w.Kind != "DaemonSet" || w.Name != "log [m5.large]" {
		t.Errorf("the row of a class of nodes is %s %s", w.Kind, w.Name)
	}
}

// TestNothingToDraw: without histories there is a table, without workloads a sentence.
func TestNothingToDraw(t *testing.T) {
	page := made(t, &Input{Now: now, Notes: []string{"There are no curves: forbidden"}})
	for _, want := range []string{"memfit governs no workload here.", "There are no curves: forbidden"} {
		if !strings.Contains(page, want) {
			t.Error(page)
		}
	}
	in := &Input{Now: now, Recommendations: []v1alpha1.MemoryRecommendation{recommendation("web")}}
	page = made(t, in)
	if strings.Contains(page, "<figure>") || !strings.Contains(page, "OOM kill (MainProcess), pod web-1") {
		t.Error(page)
	}
}

// TestManyWorkloads: the table has all of them, charts are drawn of so many.
func TestManyWorkloads(t *testing.T) {
	in := &Input{Now: now, Histories: map[types.NamespacedName]map[string]*history.Container{}}
	h := map[string]*history.Container{"app": used()}
	for range maxCharts + 7 {
		in.Recommendations = append(in.Recommendations, recommendation("web"))
	}
	in.Histories[deploymentWeb] = h
	page := made(t, in)
	if !strings.Contains(page, "7 more are only in the table") || strings.Count(page, "<figure>") != 2*maxCharts {
		t.Errorf("%d charts", strings.Count(page, "<figure>"))
	}
	if size := len(page) / (maxCharts + 7); size > 12<<10 {
		t.Errorf("%d bytes for a workload", size)
	}
}

// TestGap: where nothing was measured, nothing is drawn.
func TestGap(t *testing.T) {
	s := scale{from: now, to: now.Add(4 * time.Hour), most: 100 * memory.MiB}
	got := area(&s, []peak{
		{now, time.Hour, 50 * memory.MiB}, {now.Add(time.Hour), time.Hour, 100 * memory.MiB},
		{now.Add(3 * time.Hour), time.Hour, 25 * memory.MiB},
	})
	if want := "M80.0 166.0V89.0H187.0V12.0H294.0V166.0ZM401.0 166.0V127.5H508.0V166.0Z"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestNotManaged: the workload that comes first needs a look for a reason, and the page has it.
func TestNotManaged(t *testing.T) {
	blocked := recommendation("web")
	blocked.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue}}
	page := made(t, &Input{Now: now, Recommendations: []v1alpha1.MemoryRecommendation{blocked}})
	if !strings.Contains(page, `<td class="text">not managed</td>`) {
		t.Error(page)
	}
}
