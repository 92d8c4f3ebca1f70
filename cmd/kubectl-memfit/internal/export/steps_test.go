// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
)

// objectsOfSteps are the objects of a cluster as users write them.
const objectsOfSteps = `
apiVersion: tekton.dev/v1
kind: Task
metadata: {name: go-test, namespace: ci}
spec:
  steps:
  - {image: example.com/git:1}
  - {name: unit, image: example.com/go:1, computeResources: {limits: {cpu: "2", memory: 64Mi}}}
---
apiVersion: tekton.dev/v1
kind: Pipeline
metadata: {name: build, namespace: ci}
spec:
  tasks:
  - {name: unit, taskRef: {name: go-test}}
  - name: lint
    taskSpec: {steps: [{name: lint, image: example.com/lint:1}]}
---
apiVersion: argoproj.io/v1alpha1
kind: CronWorkflow
metadata: {name: nightly, namespace: ci}
spec:
  schedules: ["0 3 * * *"]
  workflowSpec:
    entrypoint: all
    templates:
    - {name: all, steps: [[{name: load, template: load}]]}
    - name: load
      container: {image: example.com/load:1, resources: {limits: {memory: 64Mi}, requests: {memory: 64Mi}}}
---
apiVersion: argoproj.io/v1alpha1
kind: WorkflowTemplate
metadata: {name: train, namespace: ci}
spec:
  entrypoint: fit
  templates:
  - {name: fit, script: {image: example.com/python:3, source: "print(1)"}}
`

// cluster reads objectsOfSteps.
func cluster(t *testing.T) (map[string]*unstructured.Unstructured, Reader) {
	t.Helper()
	all := map[string]*unstructured.Unstructured{}
	for doc := range strings.SplitSeq(objectsOfSteps, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		all[u.GetKind()+" "+u.GetName()] = u
	}
	return all, func(ref v1alpha1.WorkloadReference) (*unstructured.Unstructured, error) {
		if u := all[ref.Kind+" "+ref.Name]; u != nil {
			return u, nil
		}
		return nil, fmt.Errorf("%s %s not found", ref.Kind, ref.Name)
	}
}

// TestSteps: the patch for a step is for the object that has its template, and applies to it.
func TestSteps(t *testing.T) {
	for name, tc := range map[string]struct {
		platform  string
		values    []string
		container string
		target    string // empty: left out
		want      string // a part of the patched object, or of the reason
	}{
		"a task of a pipeline": {
			"tekton", []string{"build", "unit"}, "step-unit", "Task go-test", `"limits":{"cpu":"2","memory":"256Mi"}`,
		},
		"a task that is embedded in a pipeline": {
			"tekton", []string{"build", "lint"}, "step-lint", "Pipeline build",
			`"computeResources":{"limits":{"memory":"256Mi"},"requests":{"memory":"128Mi"}}`,
		},
		"a task alone": {"tekton", []string{"go-test"}, "step-unit", "Task go-test", `"requests":{"memory":"128Mi"}`},
		"a step of a CronWorkflow": {
			"argo", []string{"nightly", "load"}, "main", "CronWorkflow nightly",
			`"resources":{"limits":{"memory":"256Mi"},"requests":{"memory":"128Mi"}}`,
		},
		"the entrypoint of a WorkflowTemplate": {
			"argo", []string{"train"}, "main", "WorkflowTemplate train", `"limits":{"memory":"256Mi"}`,
		},
		"a step without a name":          {"tekton", []string{"go-test"}, "step-unnamed-0", "", "no container has"},
		"a task that the pipeline lacks": {"tekton", []string{"build", "e2e"}, "step-e2e", "", "no task e2e"},
		"a template of another kind":     {"argo", []string{"nightly", "all"}, "main", "", "has no template all"},
		"a Workflow that is in no cluster": {
			"argo", []string{"adhoc", "x"}, "main", "", "WorkflowTemplate adhoc not found",
		},
		"a runner":         {"github", []string{"linux"}, "runner", "", "memfit cannot patch definitions of github"},
		"a class of nodes": {"nodeclass", []string{"log", "m5.large"}, "app", "", "one pod template"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, read := cluster(t)
			limit, request := resource.MustParse("256Mi"), resource.MustParse("128Mi")
			rec := &v1alpha1.MemoryRecommendation{}
			rec.Namespace, rec.Name = "ci", "podidentity-x"
			rec.Status.Identity = &v1alpha1.PodIdentity{Platform: tc.platform, Values: tc.values}
			rec.Status.Containers = []v1alpha1.ContainerRecommendation{
				{Container: tc.container, Recommended: &v1alpha1.Size{Limit: &limit, Request: &request}},
			}
			s := SourceOf(rec, read)
			r := exported(t, []Source{s}, Options{Format: JSON6902})
			if tc.target == "" {
				if r.Exported != 0 || !strings.Contains(string(r.Text), tc.want) {
					t.Errorf("the reason is not %q:\n%s", tc.want, r.Text)
				}
				return
			}
			if !strings.Contains(string(r.Text), "# The patch is for "+tc.target+".\n") {
				t.Errorf("not for %s:\n%s", tc.target, r.Text)
			}
			if got := patched(t, objects[tc.target], r.Text); !strings.Contains(got, tc.want) {
				t.Errorf("patched, it lacks %s:\n%s", tc.want, got)
			}
			if other := exported(t, []Source{s}, Options{Format: Kustomize}); other.Exported != 0 ||
				!strings.Contains(string(other.Text), "-o json6902") {
				t.Errorf("as kustomize:\n%s", other.Text)
			}
		})
	}
}

// patched is an object with a patch, as JSON.
func patched(t *testing.T, object *unstructured.Unstructured, text []byte) string {
	t.Helper()
	operations, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply(before)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return string(after)
}
