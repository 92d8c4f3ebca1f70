// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
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
	why := WhyOf(&snapshot, OfPod(shop(t), snapshot.Name))
	if err := why.Write(&out, false); err != nil {
		t.Fatal(err)
	}
	golden(t, "why.txt", out.String())

	out.Reset()
	why = WhyOf(&snapshot, nil)
	if err := why.Write(&out, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "no profile governs its workload") {
		t.Error(out.String())
	}
}

func TestOfPod(t *testing.T) {
	rec := func(workload string, killed ...string) v1alpha1.MemoryRecommendation {
		var r v1alpha1.MemoryRecommendation
		r.Spec.Workload.Name = workload
		for _, pod := range killed {
			r.Status.RecentOOMKills = append(r.Status.RecentOOMKills, v1alpha1.OOMKillRecord{Pod: pod})
		}
		return r
	}
	recs := []v1alpha1.MemoryRecommendation{rec("web"), rec("web-api"), rec("db", "web-odd")}
	for pod, want := range map[string]string{
		"web-6d5f7c9b8-x2x7k": "web", "web-api-6d5f7c9b8-x2x7k": "web-api", "web-odd": "db", "db-0": "db", "webby-0": "",
		"web": "web",
	} {
		got := ""
		if found := OfPod(recs, pod); found != nil {
			got = found.Spec.Workload.Name
		}
		if got != want {
			t.Errorf("%s belongs to %q, want %q", pod, got, want)
		}
	}
}

func TestCurve(t *testing.T) {
	if curve(nil) != "" {
		t.Error("a curve of nothing")
	}
}
