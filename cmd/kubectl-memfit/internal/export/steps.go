// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/memfit/memfit/api/v1alpha1"
)

// Reader reads an object by its kind and name.
type Reader func(ref v1alpha1.WorkloadReference) (*unstructured.Unstructured, error)

// hasStep reports whether stepOf supports the platform of pods that a CI system creates.
func hasStep(id *v1alpha1.PodIdentity) bool {
	return id != nil && len(id.Values) > 0 && (id.Platform == "tekton" || id.Platform == "argo")
}

// stepOf reads the object with the template of the pods of a CI system. id.Values are [task] or [pipeline, task] for
// Tekton, [workflow] or [workflow, template] for Argo Workflows.
func stepOf(id *v1alpha1.PodIdentity, read Reader) (*unstructured.Unstructured, error) {
	switch {
	case id.Platform == "argo":
		return workflowOf(id.Values[0], read)
	case len(id.Values) == 1:
		return read(v1alpha1.WorkloadReference{APIVersion: "tekton.dev/v1", Kind: "Task", Name: id.Values[0]})
	}
	pipeline, err := read(v1alpha1.WorkloadReference{APIVersion: "tekton.dev/v1", Kind: "Pipeline", Name: id.Values[0]})
	if err != nil {
		return nil, err
	}
	task, _ := pipelineTask(pipeline, id.Values[1])
	if name := textAt(task, "taskRef", "name"); name != "" {
		return read(v1alpha1.WorkloadReference{APIVersion: "tekton.dev/v1", Kind: "Task", Name: name})
	}
	return pipeline, nil
}

// workflowOf reads the CronWorkflow or WorkflowTemplate of the given name. If a CronWorkflow refers to a
// WorkflowTemplate, it reads that.
func workflowOf(name string, read Reader) (*unstructured.Unstructured, error) {
	const argo = "argoproj.io/v1alpha1"
	cron, err := read(v1alpha1.WorkloadReference{APIVersion: argo, Kind: "CronWorkflow", Name: name})
	if err != nil {
		return read(v1alpha1.WorkloadReference{APIVersion: argo, Kind: "WorkflowTemplate", Name: name})
	}
	if template := textAt(cron.Object, "spec", "workflowSpec", "workflowTemplateRef", "name"); template != "" {
		return read(v1alpha1.WorkloadReference{APIVersion: argo, Kind: "WorkflowTemplate", Name: template})
	}
	return cron, nil
}

// stepContainers returns the containers in the object that stepOf returns, with their names in pods.
func stepContainers(id *v1alpha1.PodIdentity, object *unstructured.Unstructured) ([]container, error) {
	last := id.Values[len(id.Values)-1]
	switch object.GetKind() {
	case "Task":
		spec, _, _ := unstructured.NestedMap(object.Object, "spec")
		return taskContainers(spec, "/spec"), nil
	case "Pipeline":
		task, at := pipelineTask(object, last)
		spec, found, _ := unstructured.NestedMap(task, "taskSpec")
		if !found {
			return nil, fmt.Errorf("no task %s with a taskSpec or taskRef.name in Pipeline %s", last, object.GetName())
		}
		return taskContainers(spec, at+"/taskSpec"), nil
	case "CronWorkflow":
		return templateContainer(object, last, len(id.Values) == 1, "spec", "workflowSpec")
	default:
		return templateContainer(object, last, len(id.Values) == 1, "spec")
	}
}

// pipelineTask returns a task of a Pipeline and its JSON pointer; nil: not found.
func pipelineTask(pipeline *unstructured.Unstructured, name string) (task map[string]any, at string) {
	for _, list := range []string{"tasks", "finally"} {
		for i, task := range mapsAt(pipeline.Object, "spec", list) {
			if textAt(task, "name") == name {
				return task, "/spec/" + list + "/" + strconv.Itoa(i)
			}
		}
	}
	return nil, ""
}

// taskContainers returns the steps and sidecars of a Task's spec. at is the JSON pointer of the spec.
func taskContainers(spec map[string]any, at string) []container {
	return append(
		containersIn(spec, at, "steps", "step-", "computeResources"),
		containersIn(spec, at, "sidecars", "sidecar-", "computeResources")...)
}

// containersIn returns the named containers of a list in spec. at is the JSON pointer of spec, prefix the start of the
// containers' names in pods, and field the field with their resources.
func containersIn(spec map[string]any, at, list, prefix, field string) (all []container) {
	for i, c := range mapsAt(spec, list) {
		name, at := textAt(c, "name"), at+"/"+list+"/"+strconv.Itoa(i)
		if name == "" { // Tekton allows unnamed steps; a patch could not test the name
			continue
		}
		all = append(all, container{
			name: prefix + name, list: list, index: i, at: at, test: operation{"test", at + "/name", name}, field: field,
			resources: resourcesAt(c, field),
		})
	}
	return all
}

// templateContainer returns the main container of the named template or of the entrypoint. spec is the path of the
// workflow's spec in the object.
func templateContainer(
	object *unstructured.Unstructured, name string, entrypoint bool, spec ...string,
) ([]container, error) {
	if entrypoint {
		name = textAt(object.Object, append(slices.Clip(spec), "entrypoint")...)
	}
	path := append(slices.Clip(spec), "templates")
	for i, template := range mapsAt(object.Object, path...) {
		if textAt(template, "name") != name {
			continue
		}
		for _, kind := range []string{"container", "script"} {
			c, found, err := unstructured.NestedMap(template, kind)
			if !found || err != nil {
				continue
			}
			at := "/" + strings.Join(path, "/") + "/" + strconv.Itoa(i)
			return []container{{
				name: "main", at: at + "/" + kind, test: operation{"test", at + "/name", name}, field: "resources",
				resources: resourcesAt(c, "resources"),
			}}, nil
		}
	}
	return nil, fmt.Errorf("%s %s has no template %s with a container or script", object.GetKind(), object.GetName(), name)
}

func mapsAt(object map[string]any, path ...string) (all []map[string]any) {
	list, _, _ := unstructured.NestedSlice(object, path...)
	for _, item := range list {
		m, _ := item.(map[string]any) // nil for other types, so that indexes do not shift
		all = append(all, m)
	}
	return all
}

func textAt(object map[string]any, path ...string) string {
	text, _, _ := unstructured.NestedString(object, path...)
	return text
}

func resourcesAt(c map[string]any, field string) (r corev1.ResourceRequirements) {
	tree, _, _ := unstructured.NestedMap(c, field)
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(tree, &r) // the patch replaces invalid resources
	return r
}
