// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/golden"
)

// shop reads the recommendations of testdata/shop.yaml.
func shop(t *testing.T) []v1alpha1.MemoryRecommendation {
	t.Helper()
	return recommendations(t, "testdata/shop.yaml")
}

func recommendations(t *testing.T, file string) []v1alpha1.MemoryRecommendation {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var recs []v1alpha1.MemoryRecommendation
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var rec v1alpha1.MemoryRecommendation
		if err := yaml.UnmarshalStrict([]byte(doc), &rec); err != nil {
			t.Fatal(err)
		}
		recs = append(recs, rec)
	}
	return recs
}

func web() Profile {
	limit := v1alpha1.NewMemoryQuantity(resource.MustParse("512Mi"))
	spec := &v1alpha1.MemoryProfileSpec{
		Sizing: v1alpha1.SizingSpec{Limit: &v1alpha1.Bounds{Max: limit}, Mode: v1alpha1.SizingRecommend},
	}
	return Profile{
		Profile: profile.Profile{
			Ref: v1alpha1.ProfileReference{Kind: profile.KindNamespaced, Name: "web"}, Namespace: "shop", Spec: spec,
		},
	}
}

func TestStatus(t *testing.T) {
	troubled := web()
	troubled.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Effective", Message: "governs 3 pods"},
		{Type: v1alpha1.ConditionUsageAvailable, Status: metav1.ConditionFalse, Reason: "UsageMissing",
			Message: "Usage unavailable from 1 node: n1 (since 2026-11-20T16:00:00Z): connection refused; memfit changes " +
				`no size until it is available (what to do: docs/guide/troubleshooting.md, "Usage cannot be read")`},
		{Type: v1alpha1.ConditionConflicted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConflict,
			Message: "Deployment web: memfit only recommends: the memory of this workload is also managed by " +
				"VerticalPodAutoscaler shop/web (updateMode Auto, controls memory). To let memfit size it, set its updateMode " +
				`to "Off" or remove memory from its controlledResources; otherwise set sizing.mode: Disabled in the profile`},
	}
	for name, o := range map[string]listing.Options{
		"status.txt":            {Namespaces: true},
		"status-wide.txt":       {Format: formatOf(t, listing.Wide)},
		"status-color.txt":      {Colors: true},
		"status-no-headers.txt": {NoHeaders: true},
		"status-names.txt":      {Format: formatOf(t, listing.Name)},
		"status.json":           {Format: formatOf(t, listing.JSON)},
	} {
		var out bytes.Buffer
		status := NewStatus(shop(t), []Profile{troubled})
		if err := status.Write(&out, o); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, out.String())
		if !bool(o.Colors) && strings.Contains(out.String(), "\x1b") {
			t.Errorf("%s has an escape sequence that somebody's recommendation brought", name)
		}
	}
}

// TestKilledWithoutANumber: what to do is on the page also where memfit has no number, and why a setting is left alone.
func TestKilledWithoutANumber(t *testing.T) {
	recs := recommendations(t, "testdata/killed.yaml")
	var out bytes.Buffer
	status := NewStatus(recs, nil)
	if err := status.Write(&out, listing.Options{}); err != nil {
		t.Fatal(err)
	}
	for i := range recs {
		e := Explain(&recs[i], nil)
		out.WriteString("\n")
		if err := e.Write(&out, false); err != nil {
			t.Fatal(err)
		}
	}
	golden.Check(t, "killed.txt", out.String())
}

func TestStatusIsOrderedWhateverTheInput(t *testing.T) {
	recs := shop(t)
	want := NewStatus(recs, nil)
	for i := range recs {
		rotated := append(append([]v1alpha1.MemoryRecommendation{}, recs[i:]...), recs[:i]...)
		if diff := cmp.Diff(want.Workloads, NewStatus(rotated, nil).Workloads); diff != "" {
			t.Errorf("the order of what the API server lists shows (-first +rotated by %d):\n%s", i, diff)
		}
	}
}

func TestSortStatus(t *testing.T) {
	for by, want := range map[string]string{"urgency": "web", "use": "orders", "kills": "report", "name": "agent"} {
		s := NewStatus(shop(t), nil)
		if s.Sort(by); s.Workloads[0].Name != want {
			t.Errorf("by %s the first is %s, want %s", by, s.Workloads[0].Name, want)
		}
	}
}

func formatOf(t *testing.T, output string) listing.Format {
	t.Helper()
	f, err := listing.Parse(output, listing.OfList)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestExplain(t *testing.T) {
	for i, rec := range shop(t) {
		governing := web().Profile
		e := Explain(&rec, &governing)
		if i == 1 { // its profile could not be read
			e = Explain(&rec, nil)
		}
		var out bytes.Buffer
		if err := e.Write(&out, false); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "explain-"+rec.Name+".txt", out.String())
		for text := range strings.Lines(out.String()) {
			if width := len([]rune(strings.TrimSuffix(text, "\n"))); width > textWidth {
				t.Errorf("%s: a line of %d characters: %s", rec.Name, width, text)
			}
		}
	}
}

// TestExplainNamesTheLayers: each value stands with the profile that says it, and what clashes stands above.
func TestExplainNamesTheLayers(t *testing.T) {
	bounds := func(low, high string) *v1alpha1.Bounds {
		return &v1alpha1.Bounds{
			Min: v1alpha1.NewMemoryQuantity(resource.MustParse(low)), Max: v1alpha1.NewMemoryQuantity(resource.MustParse(high)),
		}
	}
	giving := func(kind, namespace, name string, spec v1alpha1.MemoryProfileSpec) *profile.Profile {
		spec.Role = v1alpha1.RoleDefaults
		return &profile.Profile{Ref: v1alpha1.ProfileReference{Kind: kind, Name: name}, Namespace: namespace, Spec: &spec}
	}
	governing := web().Profile
	governing.Spec.Sizing.Mode = v1alpha1.SizingInPlace
	governing.Spec.Containers = []v1alpha1.ContainerPolicy{
		{Name: "app", Tuning: &v1alpha1.TuningSpec{ArenaMax: new(int32(2))}},
	}
	profile.Inherit([]*profile.Profile{
		&governing,
		giving(profile.KindCluster, "", "platform", v1alpha1.MemoryProfileSpec{
			Sizing: v1alpha1.SizingSpec{Posture: v1alpha1.PostureCautious, Limit: bounds("1Gi", "4Gi")},
			Drift:  v1alpha1.DriftSpec{Window: &metav1.Duration{Duration: 48 * time.Hour}},
		}),
		giving(profile.KindNamespaced, "shop", "team", v1alpha1.MemoryProfileSpec{
			Sizing: v1alpha1.SizingSpec{HeadroomPercent: new(int32(25))},
			Tuning: v1alpha1.TuningSpec{TrimInterval: &metav1.Duration{Duration: 30 * time.Second}},
		}),
	})
	e := Explain(&shop(t)[0], &governing)
	var out bytes.Buffer
	if err := e.Write(&out, false); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "explain-inherited.txt", out.String())
}

func TestHistory(t *testing.T) {
	recs := shop(t)
	for i := range recs {
		if recs[i].Name != "deployment-web" && recs[i].Name != "daemonset-agent" { // one with a history, one without
			continue
		}
		var out bytes.Buffer
		h := HistoryOf(&recs[i])
		if err := h.Write(&out, false); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "history-"+recs[i].Name+".txt", out.String())
		if recs[i].Name != "deployment-web" {
			continue
		}
		out.Reset()
		if err := listing.Object(&out, formatOf(t, listing.YAML), "WorkloadHistoryList", h); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "history.yaml", out.String())
	}
}

// TestKillsThatAreNotListedAreCounted: 65 kills of which 20 are kept in detail are 65 on each page.
func TestKillsThatAreNotListedAreCounted(t *testing.T) {
	rec := v1alpha1.MemoryRecommendation{}
	rec.Status.OOMKills = 65
	rec.Status.RecentOOMKills = make([]v1alpha1.OOMKillRecord, 20)
	p := &page{}
	p.kills(&rec.Status)
	if want := "OOM kills: 65 so far, the last 20 in detail"; !strings.Contains(p.String(), want) {
		t.Errorf("explain: want %q in %s", want, p.String())
	}
	var out bytes.Buffer
	h := HistoryOf(&rec)
	if err := h.Write(&out, false); err != nil {
		t.Fatal(err)
	}
	if want := "65 so far, the last 20 are listed"; !strings.Contains(out.String(), want) {
		t.Errorf("history: want %q in %s", want, out.String())
	}
}

// TestEvidenceNamesItsSources: what is read now, what was read before it, and what of it has page cache in it.
func TestEvidenceNamesItsSources(t *testing.T) {
	peak := resource.MustParse("64Mi")
	e := v1alpha1.Evidence{PeakWorkingSet: &peak, Samples: 4, Replicas: 1, Source: "metrics-api",
		Certainty:     "WorkingSetOnly",
		HistorySource: "prometheus"}
	const want = "peak working set 64Mi; 4 samples of 1 container, from metrics-api, some of it working set only, " +
		"history from prometheus"
	if got := evidence(&e); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNothingGoverned(t *testing.T) {
	golden.Check(t, "nothing-no-profile.txt", NothingGoverned("shop", nil))
	golden.Check(t, "nothing-anywhere.txt", NothingGoverned("", []Profile{web()}))
}

func TestFind(t *testing.T) {
	recs := shop(t)
	for asked, want := range map[string]string{
		"deployment/web": "deployment-web", "deploy/web": "deployment-web", "deployments.apps/web": "deployment-web",
		"Rollout/web": "rollout.argoproj.io-web",
		"orders":      "statefulset-orders", "cj/report": "cronjob-report", "statefulset-orders": "statefulset-orders",
	} {
		rec, err := Find(recs, asked, "namespace shop")
		if err != nil || rec.Name != want {
			t.Errorf("%s: found %v, %v; want %s", asked, rec, err, want)
		}
	}
	for asked, want := range map[string]string{
		"web":     `"web" matches several workloads in namespace shop: deployment/web, rollout/web; add the kind`,
		"wbe":     "known workloads: shop cronjob/report, shop daemonset/agent",
		"sts/web": `no profile governs a workload "sts/web" in namespace shop`,
		"":        `no profile governs a workload ""`,
	} {
		if rec, err := Find(recs, asked, "namespace shop"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: found %v, error %v; want an error with %q", asked, rec, err, want)
		}
	}
	if _, err := Find(nil, "web", "namespace shop"); err == nil || !strings.Contains(err.Error(), "memfit.dev/profile") {
		t.Errorf("nothing governed: %v; want to read how to opt in", err)
	}
	twins := []v1alpha1.MemoryRecommendation{recs[0], *recs[0].DeepCopy()}
	twins[1].Namespace = "other"
	if _, err := Find(twins, "web", "all namespaces"); err == nil ||
		!strings.Contains(
			err.Error(), "other deployment/web, shop deployment/web; add the kind and namespace (-n)",
		) {
		t.Errorf("twins in two namespaces: %v", err)
	}
}

// TestARefusedResizeIsToldWhereNothingElseChanges: one pod of several was refused the size that the others have.
func TestARefusedResizeIsToldWhereNothingElseChanges(t *testing.T) {
	limit := resource.MustParse("512Mi")
	size := v1alpha1.Size{Request: &limit, Limit: &limit}
	applied := func(reason string) []string {
		rec := v1alpha1.MemoryRecommendation{Status: v1alpha1.MemoryRecommendationStatus{
			Workload: v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
		}}
		rec.Status.Containers = []v1alpha1.ContainerRecommendation{{Container: "app", Current: size, Recommended: &size}}
		rec.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue},
			{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: reason, Message: "Pod web-1: it said no."},
		}
		row := NewStatus([]v1alpha1.MemoryRecommendation{rec}, nil).Workloads[0]
		return row.Next
	}
	if got := applied(v1alpha1.ReasonRefused); len(got) != 1 ||
		!strings.HasPrefix(got[0], "Not applied (Refused): Pod web-1: it said no. For Git: ") {
		t.Errorf("refused: %q", got)
	}
	if got := applied(v1alpha1.ReasonModeRecommend); len(got) != 0 {
		t.Errorf("nothing was to be applied, and it says what to do: %q", got)
	}
}
