// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Source is one workload: its recommendation, and the object as read.
type Source struct {
	Recommendation *v1alpha1.MemoryRecommendation
	// Object is the live workload; nil if it could not be read; Missing has the reason.
	Object  *unstructured.Unstructured
	Missing string
}

// SourceOf reads the object that has the pod template of a workload.
func SourceOf(rec *v1alpha1.MemoryRecommendation, read Reader) Source {
	s := Source{Recommendation: rec}
	ref, is := rec.Status.Workload, rec.Status.Identity
	kind, _ := workloadkind.Of(ref.APIVersion, ref.Kind)
	var err error
	switch {
	case hasStep(is):
		s.Object, err = stepOf(is, read)
	case len(kind.Template) > 0:
		s.Object, err = read(ref)
	}
	if err != nil {
		s.Object, s.Missing = nil, err.Error()
	}
	return s
}

// workload is a source prepared for export.
type workload struct {
	rec  *v1alpha1.MemoryRecommendation
	kind workloadkind.Kind
	// sized are the containers to write, in the order of the template.
	sized []container
	// names are all containers of each list, in the order of the template.
	names map[string][]string
	// unsized has the reason for each container without a size.
	unsized []string
	// refused is the reason why no patch is written.
	refused string
	// whole are the resources of the whole pod.
	whole corev1.ResourceRequirements
	// target is the object with the template of an identity's pods, "Task lint"; empty: the workload is patched.
	target string
}

// container is a container to write, and its place in the template.
type container struct {
	name string
	// list is the field that has it, index its position there; empty for a workflow's template.
	list  string
	index int
	// at is the path of the container in the object, test verifies its name, and field has its resources.
	at    string
	test  operation
	field string
	// main is true for the first of the app containers.
	main bool
	// resources of the template.
	resources corev1.ResourceRequirements
	rec       *v1alpha1.ContainerRecommendation
}

// String returns "Deployment shop/web", or "tekton: lint in namespace ci".
func (w *workload) String() string { return report.Title(w.rec.Namespace, &w.rec.Status) }

// take prepares a source for a format, and matches the recommendation with the containers of the template.
func take(s Source, format string) workload {
	w := workload{rec: s.Recommendation, names: map[string][]string{}}
	find := w.inTemplate
	if w.rec.Status.Identity != nil {
		find = w.inSteps
	}
	all, err := find(s, format)
	if err != nil {
		w.refused = err.Error()
		return w
	}
	for _, c := range all {
		w.add(c)
	}
	for i := range w.rec.Status.Containers {
		name := w.rec.Status.Containers[i].Container
		if !slices.ContainsFunc(all, func(c container) bool { return c.name == name }) {
			w.unsized = append(w.unsized, name+" is not in the template; something adds it to the pods")
		}
	}
	if len(w.sized) == 0 {
		w.refused = "no container has a recommended size"
	}
	return w
}

// inTemplate returns the containers of the workload's template. The error is why it cannot be patched.
func (w *workload) inTemplate(s Source, format string) ([]container, error) {
	ref := w.rec.Status.Workload
	kind, known := workloadkind.Of(ref.APIVersion, ref.Kind)
	w.kind = kind
	switch {
	case known && len(kind.Template) == 0:
		return nil, fmt.Errorf("a %s has no pod template; set the size where the pod is created", ref.Kind)
	case !known:
		return nil, fmt.Errorf("memfit does not know where a %s (%s) keeps its pod template; set the size there by "+
			"hand, from kubectl memfit explain", ref.Kind, ref.APIVersion)
	case s.Object == nil:
		return nil, errors.New(s.Missing)
	case (format == Kustomize || format == SSA) && !kind.MergedByName:
		return nil, fmt.Errorf("the containers of a %s are not merged by name, so this patch would replace them all; "+
			"use -o json6902", ref.Kind)
	}
	spec, found, err := unstructured.NestedMap(s.Object.Object, append(slices.Clone(kind.Template), "spec")...)
	if err != nil || !found {
		return nil, fmt.Errorf("it has no %s", strings.Join(kind.Template, "."))
	}
	at := "/" + strings.Join(kind.Template, "/") + "/spec"
	w.whole = resourcesAt(spec, "resources")
	all := containersIn(spec, at, "containers", "", "resources")
	if len(all) > 0 {
		all[0].main = true
	}
	return append(all, containersIn(spec, at, "initContainers", "", "resources")...), nil
}

// inSteps returns the containers of an identity's pods, as inTemplate does.
func (w *workload) inSteps(s Source, format string) ([]container, error) {
	is := w.rec.Status.Identity
	switch {
	case is.Platform == identity.ByNode:
		return nil, errors.New("its DaemonSet has one pod template for all classes of nodes; with sizing.mode " +
			"OnCreate memfit gives new pods the size of their class")
	case !hasStep(is):
		return nil, errors.New("each of its pods has its own owner, and memfit knows no template; set the size in " +
			"the platform's definition of the step, from kubectl memfit explain")
	case s.Object == nil:
		return nil, errors.New(s.Missing)
	case format != JSON6902:
		return nil, fmt.Errorf("the steps of a %s have no keys by which they are merged; use -o json6902",
			s.Object.GetKind())
	}
	w.target = s.Object.GetKind() + " " + s.Object.GetName()
	return stepContainers(is, s.Object)
}

// add matches a container with its recommendation.
func (w *workload) add(c container) {
	w.names[c.list] = append(w.names[c.list], c.name)
	c.rec = w.recommended(c.name)
	switch {
	case c.rec == nil && c.list != "initContainers":
		w.unsized = append(w.unsized, c.name+" remains unchanged: memfit does not size it")
	case c.rec == nil:
	case c.rec.Recommended == nil || c.rec.Recommended.Limit == nil && c.rec.Recommended.Request == nil:
		w.unsized = append(w.unsized, fmt.Sprintf("%s remains unchanged: %s", c.name, c.rec.Summary))
	case beyondPod(w.whole, &c):
		w.unsized = append(w.unsized, c.name+" remains unchanged: it exceeds the memory of the whole pod "+
			"(spec.resources): raise that first")
	case c.rec.Confidence == string(memory.Low) && lowers(&c):
		w.unsized = append(w.unsized, c.name+" remains unchanged: its limit would be lowered in all pods after less than a "+
			"day of use; export it after a day")
	default:
		w.sized = append(w.sized, c)
	}
}

// lowers reports whether the patch lowers the limit of the template; none is above every limit.
func lowers(c *container) bool {
	is, to := c.resources.Limits.Memory(), c.rec.Recommended.Limit
	return to != nil && (is.IsZero() || to.Cmp(*is) < 0)
}

// beyondPod reports whether the size exceeds the pod-level resources, so that the API server would refuse it.
func beyondPod(whole corev1.ResourceRequirements, c *container) bool {
	limit, request := c.rec.Recommended.Limit, c.rec.Recommended.Request
	most, all := whole.Limits.Memory(), whole.Requests.Memory()
	return limit != nil && !most.IsZero() && limit.Cmp(*most) > 0 ||
		request != nil && !all.IsZero() && request.Cmp(*c.resources.Requests.Memory()) > 0 && request.Cmp(*all) > 0
}

func (w *workload) recommended(name string) *v1alpha1.ContainerRecommendation {
	all := w.rec.Status.Containers
	i := slices.IndexFunc(all, func(c v1alpha1.ContainerRecommendation) bool { return c.Container == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}
