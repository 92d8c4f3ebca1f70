// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
)

func amount(mi int64) *resource.Quantity { return resource.NewQuantity(mi*mebi, resource.BinarySI) }

// sample returns the run of a story with two arms, of which one is killed, and a predicted trim.
func sample() *Run {
	trimmed := ratio(point{"a", "trim", "rss"}, point{"a", "work", "rss"})
	s := Story{
		Name: "sample", Title: "A sample", Found: "Memory grows.", Program: "messages.js", Image: "memfit.test/node:20",
		Command: []string{"node", "/app/messages.js"},
		Arms: []Arm{
			{Name: "a", Desc: "as it is"}, {Name: "b", Desc: "with a limit", LimitMi: 64, CPU: "250m", MayDie: true},
		},
		Steps:   []Step{{Name: "work"}, {Name: "trim"}},
		Checked: Place{"a", "work"},
		Needed:  []Need{{"what it is", "glibc arenas"}, {"what to do", "restart everything"}},
		Expect: []Expectation{
			{"as in the article", "50 of 100 MiB", 0.5, 0.1, trimmed, ""},
			{"not as in the article", "90 of 100 MiB", 0.9, 0.1, trimmed, ""},
			{"of a killed arm", "-", 1, 1, ratio(point{"b", "trim", "rss"}, point{"a", "work", "rss"}), ""},
			{"predicted", "-", 1, 0.05, predicted("a", "trim", "trim"), "no article predicts"},
			{"arenas", "-", 0.6, 0.01, partShare("a", "work", "glibc arenas"), ""},
			{"free", "-", 0.8, 0.04, freeShare("a", "work", "glibc arenas"), ""},
		},
		Pictures: []Picture{rssPicture("sample", "RSS", []string{"work", "trim"}, "a", "b")},
	}
	look := &v1alpha1.ContainerSnapshot{
		Runtime: &v1alpha1.InspectedRuntime{Type: "NodeJS", Version: "20"},
		Memory: &v1alpha1.MemoryParts{
			Resident: *amount(100),
			Parts:    []v1alpha1.MemoryPart{{Name: "glibc arenas", Resident: *amount(60), Free: amount(50)}},
			Savings:  []v1alpha1.PredictedSaving{{Action: "malloc_trim", Method: "counted", Amount: *amount(49)}},
		},
	}
	return &Run{Story: s, Took: time.Minute, Output: map[string]string{
		"kubectl memfit why pod/a-1": "Container app\n  60Mi glibc arenas, of which 50Mi free",
		"kubectl describe pod a-1":   "restart everything",
	}, Readings: []Reading{
		{Arm: "a", Step: "work", Values: map[string]float64{"rss": 100 * mebi}, Snapshot: look},
		{Arm: "b", Step: "work", Dead: "OOMKilled, exit 137"},
		{Arm: "a", Step: "before trim", Values: map[string]float64{"rss": 100 * mebi}, Snapshot: look},
		{Arm: "a", Step: "trim", Values: map[string]float64{"rss": 50 * mebi}},
	}}
}

func TestJudge(t *testing.T) {
	for i, want := range []bool{true, false, false, true, true, true} {
		if o := Judge(sample())[i]; o.OK != want {
			t.Errorf("%s: %.2f (%s), %v: %t, want %t", o.What, o.Value, o.From, o.Err, o.OK, want)
		}
	}
}

// TestPredictedWithinBounds: a result between predicted bounds is 1, otherwise the ratio to the nearer bound.
func TestPredictedWithinBounds(t *testing.T) {
	r := sample()
	saving := &r.Readings[0].Snapshot.Memory.Savings[0]
	for _, tc := range []struct {
		least, most int64 // most 0: absent
		want        float64
	}{
		{10, 90, 1}, {50, 0, 1}, {51, 90, 1}, {100, 200, 0.5}, {100, 0, 0.5}, {5, 25, 2},
	} {
		saving.Amount, saving.AtMost = *amount(tc.least), nil
		if tc.most > 0 {
			saving.AtMost = amount(tc.most)
		}
		if m, err := predicted("a", "trim", "trim")(r); err != nil || m.Value != tc.want {
			t.Errorf("%d to %d MiB predicted, 50 given back: %+v, %v, want %g", tc.least, tc.most, m, err, tc.want)
		}
	}
	saving.Amount, saving.AtMost = *amount(0), nil
	if m, err := predicted("a", "trim", "trim")(r); err == nil {
		t.Errorf("nothing predicted, 50 given back: %+v", m)
	}
	if _, err := predicted("a", "trim", "collect")(r); err == nil {
		t.Error("measured without a prediction")
	}
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	r, err := report(sample(), nil, dir)
	if err != nil {
		t.Fatal(err)
	}
	if r.OK() {
		t.Error("a story with a differing result is OK")
	}
	if r.Verdict != "1 of 2" || r.Answers[1].Line != "" {
		t.Errorf("a fact of the pod's description alone counts as memfit's: %q, %+v", r.Verdict, r.Answers)
	}
	if svg, err := os.ReadFile(filepath.Join(dir, "sample.svg")); err != nil || !strings.Contains(string(svg), "<svg") {
		t.Errorf("no picture: %v", err)
	}
	var md, output strings.Builder
	p := page{Machine: "a machine", Stories: []*Report{r}}
	if err := errors.Join(writeTemplate(&md, markdownText, p), writeTemplate(&output, outputText, r)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| as in the article | 0.50 ±0.10 (50 of 100 MiB) | 0.50 (50 of 100 MiB) |",
		"| not as in the article | 0.90 ±0.10 (90 of 100 MiB) | 0.50 (50 of 100 MiB) **differs** |",
		"![RSS](articles/sample.svg)", "| what to do | **missing** |",
		"| what it is | `60Mi glibc arenas, of which 50Mi free` |",
		"sample](#a-sample) **differs** (not as in the article: 0.50 (50 of 100 MiB), expected 0.90 ±0.10; ",
		"; memfit did not report what to do), 1 of 2 facts",
	} {
		if !strings.Contains(md.String(), want) {
			t.Errorf("articles.md lacks %q:\n%s", want, md.String())
		}
	}
	var node strings.Builder
	p.Node = "cgroup2"
	if err := writeTemplate(&node, nodeText, p); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"node cgroup2", "sample **differs**, 1 of 2 facts", "Differs in sample: memfit did not report what to do.",
		"Differs in sample: not as in the article: 0.50 (50 of 100 MiB), expected 0.90 ±0.10.",
		"all figures are in `dist/articles-cgroup2/`",
	} {
		if !strings.Contains(node.String(), want) {
			t.Errorf("articles-cgroup2.md lacks %q:\n%s", want, node.String())
		}
	}
	if row := "sample: as in the article"; strings.Contains(node.String(), row) {
		t.Errorf("articles-cgroup2.md has %q, which agrees:\n%s", row, node.String())
	}
	for _, want := range []string{ // of each arm
		"glibc arenas 60 MiB, 50 MiB free", "OOMKilled, exit 137", "no article predicts", "MISSING what to do",
		"$ kubectl memfit why pod/a-1\nContainer app\n",
	} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, output.String())
		}
	}
	r, err = report(sample(), errors.New("no pods"), dir)
	if err != nil || r.OK() || !strings.Contains(r.Err, "no pods") {
		t.Errorf("a failed story: %+v, %v", r, err)
	}
}

// TestSentences: lines that memfit wrapped are joined; list items and the output of kubectl itself are not.
func TestSentences(t *testing.T) {
	long := strings.Repeat("x", wrapped)
	why := Command{
		"kubectl memfit why pod/a", "Would help - " + long + "\n             the rest\n             - another\nNext",
	}
	if got := sentences(why); !slices.Equal(got, []string{"Would help - " + long + " the rest", "- another", "Next"}) {
		t.Errorf("%q", got)
	}
	described := Command{"kubectl describe memoryrecommendation a", "  Helps:\n    " + long + "\n    another"}
	if got := sentences(described); len(got) != 3 {
		t.Errorf("%q", got)
	}
}

// TestUnansweredFails: a needed fact that memfit did not report fails a story.
func TestUnansweredFails(t *testing.T) {
	if (&Report{Answers: []Answer{{}}}).OK() {
		t.Error("a story with a missing fact is OK")
	}
	if !(&Report{Answers: []Answer{{Line: "60Mi glibc arenas"}}}).OK() {
		t.Error("a story with all facts is not OK")
	}
}

// TestLean: on a small node only the arms that need a large one, and their expectations, are omitted.
func TestLean(t *testing.T) {
	s := sample().Story
	s.Arms[1].Wide = true
	r := sample()
	r.Story = s.lean()
	r.Readings = r.Readings[:1]
	got := Judge(r)
	if len(got) != 5 {
		t.Fatalf("%d of 6 rows are judged, without the arm of one of them: %+v", len(got), got)
	}
	for _, o := range got {
		if errors.Is(o.Err, errLeftOut) {
			t.Errorf("%s: %v", o.What, o.Err)
		}
	}
	r.Story.Lean = false
	if len(Judge(r)) != 6 {
		t.Error("a row is missing from a full story")
	}
}

// goRun returns a run of Go's story in which the limits dead were fatal. 1000 requests took 5 s in each of memfit's
// arms, and 100 ms for each of its cycles.
func goRun(dead []int, cycles map[string]float64) *Run {
	r := &Run{Story: goStory()}
	for _, mi := range goBare {
		x := Reading{Arm: goName(mi, false), Step: "load", Values: map[string]float64{"requests": 1000, "cpuSeconds": 7}}
		if slices.Contains(dead, mi) {
			x.Dead = "OOMKilled"
		}
		r.Readings = append(r.Readings, x)
	}
	for arm, n := range cycles {
		x := Reading{Arm: arm, Step: "load"}
		x.Values = map[string]float64{"gcCycles": n, "requests": 1000, "cpuSeconds": 5 + n/10}
		if arm == goTight {
			x.Limit = 126 * mebi
		}
		r.Readings = append(r.Readings, x)
	}
	return r
}

// TestGoSmallest: neither the smallest safe limit nor a larger one was fatal or unsafe.
func TestGoSmallest(t *testing.T) {
	cycles := map[string]float64{
		goNone: 20, goTight: 78, "memfit-107": 41, "memfit-113": 35, "memfit-119": 31, "memfit-126": 26, "memfit-133": 24,
		"memfit-140": 22,
	}
	r := goRun([]int{127, 146, 156}, cycles)
	if mi := goSurvived(r); mi != 162 {
		t.Errorf("%dMi is called safe without GOMEMLIMIT, where 156Mi was fatal and 162Mi was not", mi)
	}
	if mi, err := goNoSpiral(r); err != nil || mi != 113 {
		t.Errorf("%dMi is called no spiral, %v, where the collector ran 35 times at 113Mi and 41 at 107Mi", mi, err)
	}
	if mi, err := goFullSpeed(r); err != nil || mi != 126 {
		t.Errorf("%dMi is called safe, %v, where 1000 requests took 7 s without GOMEMLIMIT, 7.6 s at 126Mi and 8.1 s at "+
			"119Mi", mi, err)
	}
	if m, err := goRaisedOf(goNoSpiral)(r); err != nil || m.Value < 1.11 || m.Value > 1.12 {
		t.Errorf("%+v, %v", m, err)
	}
	cycles["memfit-140"] = 40
	if mi, err := goNoSpiral(goRun(nil, cycles)); err == nil {
		t.Errorf("%dMi is called no spiral, where all are", mi)
	}
	if mi, err := goFullSpeed(goRun(nil, cycles)); err == nil {
		t.Errorf("%dMi is called safe, where all cost more", mi)
	}
}

// TestOnlyInspectedContainersAreRead: without an inspection the agent's reason is the error.
func TestOnlyInspectedContainersAreRead(t *testing.T) {
	var s v1alpha1.MemorySnapshot
	if _, err := onlyContainer(&s); !errors.Is(err, errNotInspected) {
		t.Errorf("a snapshot without containers: %v", err)
	}
	s.Status.Containers = []v1alpha1.ContainerSnapshot{{Container: "app", InspectionMessage: "declined"}}
	if _, err := onlyContainer(&s); !errors.Is(err, errNotInspected) || !strings.Contains(err.Error(), "declined") {
		t.Errorf("a container that was not inspected: %v", err)
	}
	s.Status.Containers[0].Memory = &v1alpha1.MemoryParts{}
	if c, err := onlyContainer(&s); err != nil || c.Container != "app" {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestStories: each story is complete, its manifests have its arms, and its program exists and is short.
func TestStories(t *testing.T) {
	for _, s := range stories() {
		text, err := render(s, "cgroup2")
		if err != nil {
			t.Fatal(err)
		}
		for _, arm := range s.Arms {
			if !strings.Contains(text, "\n  name: "+arm.Name+"\n") {
				t.Errorf("%s: no Deployment %s", s.Name, arm.Name)
			}
			if n := strings.Count(text, "nodeSelector: {memfit.dev/lab-node: cgroup2}"); n != len(s.Arms) {
				t.Errorf("%s: %d of %d Deployments are for the node", s.Name, n, len(s.Arms))
			}
			if _, known := s.Profiles[arm.Profile]; arm.Profile != "" && !known {
				t.Errorf("%s: %s has no profile %q", s.Name, arm.Name, arm.Profile)
			}
		}
		if s.Found == "" || len(s.Expect) == 0 || len(s.Needed) == 0 || len(s.Pictures) == 0 {
			t.Errorf("%s is not complete", s.Name)
		}
		empty := &Run{Story: s}
		for _, o := range Judge(empty) {
			if o.OK && o.Want != 0 {
				t.Errorf("%s: %q is OK without a reading", s.Name, o.What)
			}
		}
		path := filepath.Join("programs", s.Program)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path = filepath.Join(path, "main.go")
		}
		program, err := os.ReadFile(path)
		if lines := strings.Count(string(program), "\n"); err != nil || lines >= 150 {
			t.Errorf("%s: %d lines, %v", path, lines, err)
		}
	}
}
