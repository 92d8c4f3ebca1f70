// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/golden"
)

func TestWhy(t *testing.T) {
	text, err := os.ReadFile("testdata/why.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var snapshot v1alpha1.MemorySnapshot
	if err := yaml.UnmarshalStrict(text, &snapshot); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	why := WhyOf(&snapshot, OfRecord(shop(t), snapshot.Name))
	if err := why.Write(&out, false); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "why.txt", out.String())

	out.Reset()
	why = WhyOf(&snapshot, nil)
	if err := why.Write(&out, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "no profile governs the workload") {
		t.Error(out.String())
	}
}

// TestWhyWithoutASnapshot: of a workload whose pods have finished, the recommendation holds what happened.
func TestWhyWithoutASnapshot(t *testing.T) {
	var out bytes.Buffer
	why := WhyOf(nil, &recommendations(t, "testdata/finished.yaml")[0])
	if err := why.Write(&out, false); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "why-finished.txt", out.String())
}

// TestLoansAreShown: to the pod that is asked about, in `why`, and to all of its workload in `history`.
func TestLoansAreShown(t *testing.T) {
	change := func(kind, pod, what string) v1alpha1.ChangeRecord {
		return v1alpha1.ChangeRecord{Kind: kind, Pod: pod, Pods: 1, Change: what, Why: "it grew"}
	}
	var rec v1alpha1.MemoryRecommendation
	rec.Status.RecentChanges = []v1alpha1.ChangeRecord{
		change(v1alpha1.EventLoanReturned, "web-1", "limit of container app 512Mi to 128Mi"),
		change(v1alpha1.EventNotResized, "web-1", "limit of container app 128Mi to 511Mi"),
		change(v1alpha1.EventMemoryLoaned, "web-1", "limit of container app 128Mi to 512Mi"),
		change(v1alpha1.EventMemoryLoaned, "web-2", "limit of container app 128Mi to 300Mi"),
		change(v1alpha1.EventResized, "web-1", "limit of container app 100Mi to 128Mi"),
	}
	snapshot := &v1alpha1.MemorySnapshot{}
	snapshot.Name = "web-1"
	var page, past bytes.Buffer
	why, history := WhyOf(snapshot, &rec), HistoryOf(&rec)
	if err := errors.Join(why.Write(&page, false), history.Write(&past, false)); err != nil {
		t.Fatal(err)
	}
	for text, inWhy := range map[string]bool{
		"512Mi to 128Mi": true, "128Mi to 511Mi": true, "128Mi to 512Mi": true, "128Mi to 300Mi": false,
		"100Mi to 128Mi": false,
	} {
		if strings.Contains(page.String(), text) != inWhy || !strings.Contains(past.String(), text) {
			t.Errorf("%s: in why: %t; in history %s\n%s", text, inWhy, past.String(), page.String())
		}
	}
	all := &v1alpha1.Bounds{Min: v1alpha1.NewMemoryQuantity(resource.MustParse("64Mi"))}
	said := bounds(&v1alpha1.SizingSpec{Limit: all, Request: all, Rescue: v1alpha1.RescueEnabled})
	if !strings.Contains(said, "rescue Enabled") {
		t.Errorf("explain says %q", said)
	}
}

// TestOfRecord: a pod without an owner that can be read is found by the kills that are recorded of it.
func TestOfRecord(t *testing.T) {
	rec := func(name string, killed ...string) v1alpha1.MemoryRecommendation {
		var r v1alpha1.MemoryRecommendation
		r.Name = name
		for _, pod := range killed {
			r.Status.RecentOOMKills = append(r.Status.RecentOOMKills, v1alpha1.OOMKillRecord{Pod: pod})
		}
		return r
	}
	recs := []v1alpha1.MemoryRecommendation{
		rec("web", "web-0"), rec("db", "db-0", "shared-0"), rec("train", "shared-0"),
	}
	for pod, want := range map[string]string{"web-0": "web", "db-0": "db", "web-api-6d5f7c9b8-x2x7k": "", "shared-0": ""} {
		found := OfRecord(recs, pod)
		if found == nil && want != "" || found != nil && found.Name != want {
			t.Errorf("pod %s is recorded with %+v, want %q", pod, found, want)
		}
	}
}

func TestCurve(t *testing.T) {
	if curve(nil) != "" {
		t.Error("a curve of nothing")
	}
}

// TestAHeapSizedByTheNode: a profile is advised only where nobody has set anything.
func TestAHeapSizedByTheNode(t *testing.T) {
	of := func(aware string, flags ...string) Why {
		return Why{Snapshot: &v1alpha1.MemorySnapshotStatus{Containers: []v1alpha1.ContainerSnapshot{
			{Container: "app", Runtime: &v1alpha1.InspectedRuntime{Type: "Go", ContainerAware: aware, Flags: flags}},
		}}}
	}
	governed := of("No")
	governed.Workload = &Explanation{}
	for name, c := range map[string]struct {
		why  Why
		told bool
	}{
		"nothing is set":       {of("No"), true},
		"a setting is there":   {of("No", "GOMEMLIMIT=83047219 (GOMEMLIMIT)"), false},
		"a profile governs it": {governed, false},
		"it sees the limit":    {of("Yes"), false},
	} {
		next := strings.Join(c.why.next(), "\n")
		if told := strings.Contains(next, "sizes its heap by the memory of the node"); told != c.told {
			t.Errorf("%s: %q", name, next)
		}
	}
}

// TestRetained: what glibc retains of a running container is shown where it is worth something, and of one that was
// killed it is not.
func TestRetained(t *testing.T) {
	of := func(free string, killed bool) string {
		q, peak := resource.MustParse(free), resource.MustParse("117Mi")
		c := v1alpha1.ContainerSnapshot{Container: "app", Peak: &peak, Memory: &v1alpha1.MemoryParts{
			Resident: resource.MustParse("96Mi"),
			Parts:    []v1alpha1.MemoryPart{{Name: v1alpha1.PartArenas, Resident: resource.MustParse("42Mi"), Free: &q}},
		}}
		if killed {
			c.LastKill = &v1alpha1.KillSnapshot{MinuteBefore: v1alpha1.MinuteBefore{Memory: c.Memory}}
			c.Memory = nil
		}
		w := Why{Snapshot: &v1alpha1.MemorySnapshotStatus{Containers: []v1alpha1.ContainerSnapshot{c}}}
		var out strings.Builder
		if err := w.Write(&out, false); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	const want = "Retained 38Mi of it remains after a load: the program has freed it, after a peak of 117Mi, and glibc " +
		"retains it for the next one"
	if got := of("38Mi", false); !strings.Contains(got, want) {
		t.Error(got)
	}
	for name, got := range map[string]string{"too little": of("7Mi", false), "killed": of("38Mi", true)} {
		if strings.Contains(got, "Retained") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
