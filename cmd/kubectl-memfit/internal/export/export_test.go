// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/golden"
)

// shop is the shop of the report's tests with its live workloads. The Job is gone.
func shop(t *testing.T) []Source {
	t.Helper()
	live := map[string]*unstructured.Unstructured{}
	for _, doc := range documents(t, "testdata/objects.yaml") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &u.Object); err != nil {
			t.Fatal(err)
		}
		live[u.GetKind()+"/"+u.GetName()] = u
	}
	var all []Source
	for _, doc := range documents(t, "../report/testdata/shop.yaml") {
		var rec v1alpha1.MemoryRecommendation
		if err := yaml.Unmarshal(doc, &rec); err != nil {
			t.Fatal(err)
		}
		s := Source{Recommendation: &rec, Object: live[rec.Status.Workload.Kind+"/"+rec.Status.Workload.Name]}
		if s.Object == nil {
			s.Missing = `reading the object: jobs.batch "import" not found`
		}
		all = append(all, s)
	}
	return all
}

func documents(t *testing.T, file string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(text, []byte("\n---\n"))
}

func exported(t *testing.T, sources []Source, o Options) Result {
	t.Helper()
	r, err := Write(sources, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestGolden(t *testing.T) {
	for _, format := range Formats {
		r := exported(t, shop(t), Options{Format: format})
		golden.Check(t, format+".golden.yaml", string(r.Text))
		if left := 7 - r.Exported; len(r.LeftOut) != left {
			t.Errorf("%s: %d of 7 exported, but %d are said to be left out: %q", format, r.Exported, len(r.LeftOut), r.LeftOut)
		}
	}
}

// TestPullRequest: the text of a pull request has each number that changes, and its reasons.
func TestPullRequest(t *testing.T) {
	golden.Check(t, "pull-request.golden.md", string(exported(t, shop(t), Options{Format: Kustomize}).Markdown))
}

// TestPullRequestWithoutChange: templates that have the recommended sizes already.
func TestPullRequestWithoutChange(t *testing.T) {
	source := shop(t)[0]
	containers, _, err := unstructured.NestedSlice(source.Object.Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"limits", "requests"} {
		for _, c := range containers {
			values := map[string]string{"limits": "512Mi", "requests": "231Mi"}
			if err := unstructured.SetNestedField(c.(map[string]any), values[list], "resources", list, "memory"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := unstructured.SetNestedSlice(
		source.Object.Object, containers, "spec", "template", "spec", "containers",
	); err != nil {
		t.Fatal(err)
	}
	got := string(exported(t, []Source{source}, Options{Format: Kustomize}).Markdown)
	if got != "All exported workloads (1) have the recommended size.\n" {
		t.Errorf("without a change the text is %q", got)
	}
}

// TestAnHourLowersNothing: a merged patch reaches all pods, without a canary and without memfit's rollback.
func TestAnHourLowersNothing(t *testing.T) {
	source := shop(t)[0]
	c := &source.Recommendation.Status.Containers[0]
	c.Confidence = "Low"
	for limit, exports := range map[string]int{"300Mi": 1, "256Mi": 1, "200Mi": 0} {
		limit := resource.MustParse(limit)
		c.Recommended = &v1alpha1.Size{Limit: &limit}
		got := exported(t, []Source{source}, Options{Format: Kustomize})
		if got.Exported != exports || exports == 0 && !strings.Contains(string(got.Text), "confidence Low is not enough") {
			t.Errorf("limit 256Mi to %s: %d exported\n%s", limit.String(), got.Exported, got.Text)
		}
	}
	source = shop(t)[1] // its template has no limit
	without := &source.Recommendation.Status.Containers[0]
	limit, more := resource.MustParse("256Mi"), resource.MustParse("384Mi")
	for current, exports := range map[*resource.Quantity]int{&limit: 1, nil: 0} {
		without.Confidence, without.Recommended, without.Current.Limit = "Low", &v1alpha1.Size{Limit: &more}, current
		if got := exported(t, []Source{source}, Options{Format: Kustomize}); got.Exported != exports {
			t.Errorf("limit %v of running pods to 384Mi: %d exported\n%s", current, got.Exported, got.Text)
		}
	}
	source = shop(t)[0]
	c = &source.Recommendation.Status.Containers[0]
	lower := resource.MustParse("200Mi")
	c.Confidence, c.Recommended = "Medium", &v1alpha1.Size{Limit: &lower}
	if got := exported(t, []Source{source}, Options{Format: Kustomize}); got.Exported != 1 {
		t.Errorf("after a day nothing is exported:\n%s", got.Text)
	}
}

// TestPullRequestIsBounded: GitHub takes 65536 characters, and what is left out is counted.
func TestPullRequestIsBounded(t *testing.T) {
	r := exported(t, slices.Repeat(shop(t)[:1], 500), Options{Format: Kustomize})
	got := string(r.Markdown)
	if len(got) > 65536 {
		t.Errorf("the text has %d bytes, want at most 65536", len(got))
	}
	shown := strings.Count(got, "\n### ")
	if want := fmt.Sprintf("\nOmitted here: %d workloads; ", 500-shown); r.Exported != 500 || shown == 0 ||
		!strings.Contains(got, want) {
		t.Errorf("%d exported, %d shown; the text does not say %q", r.Exported, shown, want)
	}
}

// TestNothingEscapesThePullRequest: no reason becomes markup, a mention or a link, whatever it says.
func TestNothingEscapesThePullRequest(t *testing.T) {
	evil := "```\n# @everyone\n~~~\n| a | b |\n[x](y) ` @team <img src=x>"
	sources := shop(t)
	for _, s := range sources {
		for i := range s.Recommendation.Status.Containers {
			c := &s.Recommendation.Status.Containers[i]
			c.Reasons, c.Summary, c.Decision = []string{evil}, evil, evil
		}
	}
	text := string(exported(t, sources, Options{Format: Kustomize}).Markdown)
	fenced, shown := false, 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if !strings.Contains(line, "@team") || fenced && strings.HasPrefix(line, "    ") {
			continue
		}
		shown++
		if outside := regexp.MustCompile("`[^`]*`").ReplaceAllString(line, ""); strings.ContainsAny(outside, "@<[`") {
			t.Errorf("markup from a container: %q", line)
		}
	}
	if fenced || shown == 0 {
		t.Errorf("a block does not end, or the decision is not in the table (%d rows)", shown)
	}
}

// TestEqualStateEqualBytes: whatever order the API server lists in.
func TestEqualStateEqualBytes(t *testing.T) {
	for _, format := range Formats {
		want := exported(t, shop(t), Options{Format: format})
		turned := shop(t)
		slices.Reverse(turned)
		if diff := cmp.Diff(want, exported(t, turned, Options{Format: format})); diff != "" {
			t.Errorf("%s differs when sources come the other way round:\n%s", format, diff)
		}
	}
}

// TestNothingEscapesItsComment: what memfit found is text from other people's containers, and this file goes to Git.
func TestNothingEscapesItsComment(t *testing.T) {
	evil := "x\nkind: Secret\r\nkind: Secret\u2028kind: Secret\u0085kind: Secret"
	for _, format := range Formats {
		sources := shop(t)
		for _, s := range sources {
			for i := range s.Recommendation.Status.Containers {
				c := &s.Recommendation.Status.Containers[i]
				c.Reasons, c.Summary, c.Decision = []string{evil}, evil, evil
			}
			for i := range s.Recommendation.Status.Conditions {
				s.Recommendation.Status.Conditions[i].Message = evil
			}
			if s.Object == nil {
				s.Missing = evil
			}
		}
		for doc := range bytes.SplitSeq(exported(t, sources, Options{Format: format}).Text, []byte("---\n")) {
			var value any
			if err := yaml.Unmarshal(doc, &value); err != nil {
				t.Errorf("%s: not YAML any more: %v\n%s", format, err, doc)
			}
			if m, ok := value.(map[string]any); ok && m["kind"] == "Secret" {
				t.Errorf("%s: a reason became YAML:\n%s", format, doc)
			}
		}
	}
}

// builtIn are the live workloads that kustomize patches by name, as a base in Git has them: without namespace when
// unnamed.
func builtIn(t *testing.T, unnamed bool) string {
	t.Helper()
	var base []string
	for _, s := range shop(t) {
		if s.Object == nil || s.Object.GetKind() == "Rollout" {
			continue
		}
		if unnamed {
			unstructured.RemoveNestedField(s.Object.Object, "metadata", "namespace")
		}
		text, err := yaml.Marshal(s.Object.Object)
		if err != nil {
			t.Fatal(err)
		}
		base = append(base, string(text))
	}
	return strings.Join(base, "---\n")
}

// TestKustomizeBuilds: kustomize itself applies the patches, to bases with and without a namespace of their own.
func TestKustomizeBuilds(t *testing.T) {
	for name, unnamed := range map[string]bool{
		"a base with namespaces": false, "a base that gets its namespace from the kustomization": true,
	} {
		t.Run(name, func(t *testing.T) {
			kustomization := "resources: [base.yaml]\npatches: [{path: memory.yaml}]\n"
			if unnamed {
				kustomization += "namespace: shop\n"
			}
			built := build(t, map[string]string{
				"kustomization.yaml": kustomization, "base.yaml": builtIn(t, unnamed),
				"memory.yaml": string(exported(t, shop(t), Options{Format: Kustomize, NoNamespace: unnamed}).Text),
			})
			for path, want := range map[string]string{
				"Deployment/web/app":     `{"limits":{"cpu":"1","memory":"512Mi"},"requests":{"cpu":"100m","memory":"231Mi"}}`,
				"Deployment/web/cache":   `{"limits":{"memory":"64Mi"}}`,
				"StatefulSet/orders/app": `{"limits":{"memory":"1200Mi"},"requests":{"memory":"900Mi"}}`,
				"CronJob/report/job":     `{"limits":{"memory":"300Mi"},"requests":{"cpu":"50m","memory":"200Mi"}}`,
				"DaemonSet/agent/agent":  `{"limits":{"memory":"64Mi"}}`,
			} {
				if got := built.resources[path]; got != want {
					t.Errorf("%s has resources %s, want %s", path, got, want)
				}
			}
			if first := slices.Index(built.paths, "Deployment/web/cache"); first < 0 ||
				built.paths[first+1] != "Deployment/web/app" {
				t.Errorf("containers are %v, want cache to stay before app: the first one is what kubectl logs shows", built.paths)
			}
			if len(built.paths) != 6 {
				t.Errorf("%d containers, want 6: the patch added or lost some: %v", len(built.paths), built.paths)
			}
		})
	}
}

// TestOneWorkloadIsOneDocument: kustomize takes a JSON patch from a file with one document, and so do kubectl patch and
// helm.
func TestOneWorkloadIsOneDocument(t *testing.T) {
	built := build(t, map[string]string{
		"kustomization.yaml": "resources: [base.yaml]\npatches: [{target: {kind: Deployment, name: web}, path: " +
			"memory.yaml}]\n", "base.yaml": builtIn(t, true),
		"memory.yaml": string(exported(t, shop(t)[:1], Options{Format: JSON6902}).Text),
	})
	if got, want := built.resources["Deployment/web/app"], `{"limits":{"cpu":"1","memory":"512Mi"},"requests":{"cpu":"100m","memory":"231Mi"}}`; got != want {
		t.Errorf("the Deployment has resources %s, want %s", got, want)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(exported(t, shop(t)[:1], Options{Format: HelmValues}).Text, &values); err != nil ||
		values["app"] == nil {
		t.Errorf("values are %v, %v; want those of container app", values, err)
	}
}

// found are containers: "Kind/name/container" in their order, and the resources of each as JSON.
type found struct {
	paths     []string
	resources map[string]string
}

// build runs kustomize and returns the containers of what it built.
func build(t *testing.T, files map[string]string) found {
	t.Helper()
	disk := filesys.MakeFsInMemory()
	for name, text := range files {
		if err := disk.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, ".")
	if err != nil {
		t.Fatal(err)
	}
	out := found{resources: map[string]string{}}
	for _, r := range result.Resources() {
		object, err := r.Map()
		if err != nil {
			t.Fatal(err)
		}
		out.add(t, &unstructured.Unstructured{Object: object})
	}
	return out
}

func (f *found) add(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	path := []string{"spec", "template", "spec"}
	if u.GetKind() == "CronJob" {
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	for _, list := range []string{"containers", "initContainers"} {
		all, _, err := unstructured.NestedSlice(u.Object, append(slices.Clone(path), list)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			resources, err := json.Marshal(c.(map[string]any)["resources"])
			if err != nil {
				t.Fatal(err)
			}
			path := u.GetKind() + "/" + u.GetName() + "/" + c.(map[string]any)["name"].(string)
			f.paths, f.resources[path] = append(f.paths, path), string(resources)
		}
	}
}

// operations are the JSON patches of an export, by workload.
func operations(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for doc := range bytes.SplitSeq(exported(t, shop(t), Options{Format: JSON6902}).Text, []byte("---\n")) {
		ops, err := yaml.YAMLToJSON(doc)
		if err != nil {
			t.Fatal(err)
		}
		title, _, found := strings.Cut(string(doc), ": recommended by memfit")
		if !found {
			t.Fatalf("a document that does not say what it is about:\n%s", doc)
		}
		out[title[strings.LastIndex(title, "# ")+2:]] = ops
	}
	return out
}

func TestJSONPatchesApply(t *testing.T) {
	patches, got := operations(t), found{resources: map[string]string{}}
	if len(patches) != 4 {
		t.Errorf(
			"patches for %d workloads, want 4: the Deployment, the StatefulSet, the CronJob and the Rollout", len(patches),
		)
	}
	for _, s := range shop(t) {
		if s.Object == nil || s.Object.GetKind() == "DaemonSet" {
			continue
		}
		before, err := s.Object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(patches[s.Object.GetKind()+" shop/"+s.Object.GetName()])
		if err != nil {
			t.Fatal(err)
		}
		after, err := patch.Apply(before)
		if err != nil {
			t.Fatalf("%s: %v", s.Object.GetKind(), err)
		}
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(after); err != nil {
			t.Fatal(err)
		}
		got.add(t, &u)
	}
	want := map[string]string{
		"Deployment/web/app":     `{"limits":{"cpu":"1","memory":"512Mi"},"requests":{"cpu":"100m","memory":"231Mi"}}`,
		"Deployment/web/cache":   `{"limits":{"memory":"64Mi"}}`,
		"StatefulSet/orders/app": `{"limits":{"memory":"1200Mi"},"requests":{"memory":"900Mi"}}`,
		"CronJob/report/job":     `{"limits":{"memory":"300Mi"},"requests":{"cpu":"50m","memory":"200Mi"}}`,
		"CronJob/report/upload":  "null",
		"Rollout/web/app":        `{"limits":{"memory":"300Mi"},"requests":{"memory":"220Mi"}}`,
	}
	if diff := cmp.Diff(want, got.resources); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

// TestJSONPatchRefusesAnotherTemplate: somebody put a container before ours since the patch was made.
func TestJSONPatchRefusesAnotherTemplate(t *testing.T) {
	patch, err := jsonpatch.DecodePatch(operations(t)["Deployment shop/web"])
	if err != nil {
		t.Fatal(err)
	}
	web := shop(t)[0].Object
	all, _, _ := unstructured.NestedSlice(web.Object, "spec", "template", "spec", "containers")
	slices.Reverse(all)
	if err := unstructured.SetNestedSlice(web.Object, all, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	text, err := web.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := patch.Apply(text); err == nil {
		t.Error("the patch of container app was applied to container cache")
	}
}
