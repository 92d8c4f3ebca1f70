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
	// Object is the live object with the pod template; nil if the workload has no pod template, or reading failed.
	Object  *unstructured.Unstructured
	Missing string // why reading failed
}

// SourceOf reads the object with the pod template of a workload.
func SourceOf(rec *v1alpha1.MemoryRecommendation, read Reader) Source {
	s := Source{Recommendation: rec}
	ref, id := rec.Status.Workload, rec.Status.Identity
	kind, _ := workloadkind.Of(ref.APIVersion, ref.Kind)
	var err error
	switch {
	case hasStep(id):
		s.Object, err = stepOf(id, read)
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
	// names has for each list, such as "initContainers", the names of all its containers in the order of the template.
	names map[string][]string
	// unsized has a reason for each container without a size, except init containers that memfit does not size.
	unsized []string
	// refused is the reason why no patch is written; empty: a patch is written.
	refused string
	// podResources are the pod-level resources (spec.resources).
	podResources corev1.ResourceRequirements
	// target is the object to patch instead of the workload, such as "Task lint"; empty: the workload.
	target string
}

// container is a container of a template.
type container struct {
	name  string    // as in pods: Tekton names the container of step lint "step-lint"
	list  string    // field of the containers, such as "initContainers"; empty for a workflow's template
	index int       // in list
	at    string    // JSON pointer of the container in the object
	test  operation // checks the name
	field string    // field of the resources, such as "resources"
	main  bool      // first of the app containers

	resources corev1.ResourceRequirements // in the template
	rec       *v1alpha1.ContainerRecommendation
}

// String returns "Deployment shop/web" or "tekton: lint in namespace ci".
func (w *workload) String() string { return report.Title(w.rec.Namespace, &w.rec.Status) }

// prepare prepares a source for a format, and matches the recommendation with the containers of the template.
func prepare(s Source, format string) workload {
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
			w.unsized = append(w.unsized, name+" is not in the template: something else, such as a webhook, "+
				"adds it to the pods; set its size there")
		}
	}
	if len(w.sized) == 0 {
		w.refused = "no container has a recommended size"
	}
	return w
}

// inTemplate returns the containers of the workload's template. The error explains why the workload cannot be patched.
func (w *workload) inTemplate(s Source, format string) ([]container, error) {
	ref := w.rec.Status.Workload
	kind, known := workloadkind.Of(ref.APIVersion, ref.Kind)
	w.kind = kind
	switch {
	case known && len(kind.Template) == 0:
		return nil, fmt.Errorf("a %s has no pod template; set the size where the pod is created", ref.Kind)
	case !known:
		return nil, fmt.Errorf("memfit does not know where a %s (%s) has its pod template; set the size by hand: kubectl "+
			"memfit explain shows it", ref.Kind, ref.APIVersion)
	case s.Object == nil:
		return nil, errors.New(s.Missing)
	case (format == Kustomize || format == SSA) && !kind.MergedByName:
		return nil, fmt.Errorf("the containers of a %s are not merged by name, so a patch would replace all containers; "+
			"use -o json6902", ref.Kind)
	}
	spec, found, err := unstructured.NestedMap(s.Object.Object, append(slices.Clone(kind.Template), "spec")...)
	if err != nil || !found {
		return nil, fmt.Errorf("the object has no %s", strings.Join(kind.Template, "."))
	}
	at := "/" + strings.Join(kind.Template, "/") + "/spec"
	w.podResources = resourcesAt(spec, "resources")
	all := containersIn(spec, at, "containers", "", "resources")
	if len(all) > 0 {
		all[0].main = true
	}
	return append(all, containersIn(spec, at, "initContainers", "", "resources")...), nil
}

// inSteps returns the containers of a Tekton task or an Argo template. The error is the reason why they cannot be
// patched.
func (w *workload) inSteps(s Source, format string) ([]container, error) {
	id := w.rec.Status.Identity
	switch {
	case id.Platform == identity.ByNode:
		return nil, errors.New("the DaemonSet has one pod template for all node classes; with sizing.mode OnCreate, " +
			"memfit sizes new pods by node class")
	case !hasStep(id):
		return nil, fmt.Errorf("memfit cannot patch definitions of %s; set the size there yourself (kubectl memfit explain "+
			"shows it)", id.Platform)
	case s.Object == nil:
		return nil, errors.New(s.Missing)
	case format != JSON6902:
		return nil, fmt.Errorf("the steps of a %s cannot be merged by name; use -o json6902", s.Object.GetKind())
	}
	w.target = s.Object.GetKind() + " " + s.Object.GetName()
	return stepContainers(id, s.Object)
}

// add adds a container to w.sized, or the reason why it has no size to w.unsized.
func (w *workload) add(c container) {
	w.names[c.list] = append(w.names[c.list], c.name)
	c.rec = w.recommended(c.name)
	switch {
	case c.rec == nil && c.list != "initContainers":
		w.unsized = append(w.unsized, c.name+" remains unchanged: memfit does not size it")
	case c.rec == nil: // an init container that memfit does not size
	case c.rec.Recommended == nil || c.rec.Recommended.Limit == nil && c.rec.Recommended.Request == nil:
		w.unsized = append(w.unsized, fmt.Sprintf("%s remains unchanged: %s", c.name, c.rec.Summary))
	case exceedsPod(w.podResources, &c):
		w.unsized = append(w.unsized, c.name+" remains unchanged: the recommended size exceeds the resources of the pod: "+
			"raise spec.resources first")
	case c.rec.Confidence == string(memory.Low) && lowers(&c):
		w.unsized = append(w.unsized, c.name+" remains unchanged: confidence Low is not enough to lower the limit of all "+
			"pods; export it again after a day of use")
	default:
		w.sized = append(w.sized, c)
	}
}

// lowers reports whether the patch lowers the limit of new pods: the template's or, without one, that of running pods,
// for example from a LimitRange. Any limit lowers a container without a limit.
func lowers(c *container) bool {
	limit, recommended := c.resources.Limits.Memory(), c.rec.Recommended.Limit
	if limit.IsZero() && c.rec.Current.Limit != nil {
		limit = c.rec.Current.Limit
	}
	return recommended != nil && (limit.IsZero() || recommended.Cmp(*limit) < 0)
}

// exceedsPod reports whether the recommended size exceeds the pod-level resources. The API server would refuse it.
func exceedsPod(pod corev1.ResourceRequirements, c *container) bool {
	limit, request := c.rec.Recommended.Limit, c.rec.Recommended.Request
	podLimit, podRequest := pod.Limits.Memory(), pod.Requests.Memory()
	if limit != nil && !podLimit.IsZero() && limit.Cmp(*podLimit) > 0 {
		return true
	}
	rises := request != nil && request.Cmp(*c.resources.Requests.Memory()) > 0
	return rises && !podRequest.IsZero() && request.Cmp(*podRequest) > 0
}

func (w *workload) recommended(name string) *v1alpha1.ContainerRecommendation {
	all := w.rec.Status.Containers
	i := slices.IndexFunc(all, func(c v1alpha1.ContainerRecommendation) bool { return c.Container == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}
