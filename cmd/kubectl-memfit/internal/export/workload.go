// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Source is one workload: what is recommended, and the object as it was read.
type Source struct {
	Recommendation *v1alpha1.MemoryRecommendation
	// Object is the live workload; nil when it could not be read, and Missing has the reason.
	Object  *unstructured.Unstructured
	Missing string
}

// workload is a source taken apart.
type workload struct {
	rec  *v1alpha1.MemoryRecommendation
	kind workloadkind.Kind
	// sized are the containers to write, in the order of the template.
	sized []container
	// names are all containers of each list, in the order of the template.
	names map[string][]string
	// unsized has the reason for each container without a size.
	unsized []string
	// refused is why nothing is written at all.
	refused string
}

// container is one to write, and its place in the template.
type container struct {
	name string
	// list is "containers" or "initContainers", index its place there.
	list  string
	index int
	// main: the first of the app containers.
	main bool
	// resources are those of the template.
	resources corev1.ResourceRequirements
	rec       *v1alpha1.ContainerRecommendation
}

// String is "Deployment shop/web".
func (w *workload) String() string {
	return fmt.Sprintf("%s %s/%s", w.rec.Status.Workload.Kind, w.rec.Namespace, w.rec.Status.Workload.Name)
}

// take takes a source apart for a format.
func take(s Source, f Format) workload {
	ref := s.Recommendation.Status.Workload
	w := workload{rec: s.Recommendation}
	kind, known := workloadkind.Of(ref.APIVersion, ref.Kind)
	w.kind = kind
	switch {
	case s.Recommendation.Status.Identity != nil:
		w.refused = "its pods have an owner each, and no template that memfit knows; set the size where the platform takes " +
			"that of a step, from kubectl memfit explain"
	case known && len(kind.Template) == 0:
		w.refused = "a " + ref.Kind + " has no pod template; set the size where the pod is made"
	case !known:
		w.refused = fmt.Sprintf(
			"memfit does not know where a %s (%s) keeps its pod template; set the size there by hand, from kubectl memfit "+
				"explain",
			ref.Kind, ref.APIVersion,
		)
	case s.Object == nil:
		w.refused = s.Missing
	case f.merges() && !kind.MergedByName:
		w.refused = fmt.Sprintf(
			"the containers of a %s are not merged by name, so this patch would replace them all; use -o json6902", ref.Kind,
		)
	}
	if w.refused != "" {
		return w
	}
	template, err := templateOf(s.Object, kind)
	if err != nil {
		w.refused = err.Error()
		return w
	}
	w.find(template)
	if len(w.sized) == 0 {
		w.refused = "no container has a recommended size"
	}
	return w
}

// HasTemplate reports whether the workload is of a kind whose live object is needed: one with a pod template.
func HasTemplate(rec *v1alpha1.MemoryRecommendation) bool {
	kind, _ := workloadkind.Of(rec.Status.Workload.APIVersion, rec.Status.Workload.Kind)
	return len(kind.Template) > 0
}

func templateOf(object *unstructured.Unstructured, kind workloadkind.Kind) (*corev1.PodTemplateSpec, error) {
	path := strings.Join(kind.Template, ".")
	tree, found, err := unstructured.NestedMap(object.Object, kind.Template...)
	if err != nil || !found {
		return nil, fmt.Errorf("it has no %s", path)
	}
	var template corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, &template); err != nil {
		return nil, fmt.Errorf("its %s is not a pod template: %w", path, err)
	}
	return &template, nil
}

// find matches what is recommended with the containers of the template.
func (w *workload) find(template *corev1.PodTemplateSpec) {
	w.names = map[string][]string{}
	look := func(list string, containers []corev1.Container) {
		for i := range containers {
			c := container{
				name: containers[i].Name, list: list, index: i, main: list == "containers" && i == 0,
				resources: containers[i].Resources,
			}
			w.names[list] = append(w.names[list], c.name)
			c.rec = w.recommended(c.name)
			switch {
			case c.rec == nil && list == "containers":
				w.unsized = append(w.unsized, c.name+" remains unchanged: memfit does not size it")
			case c.rec == nil:
			case c.rec.Recommended == nil || c.rec.Recommended.Limit == nil && c.rec.Recommended.Request == nil:
				w.unsized = append(w.unsized, fmt.Sprintf("%s remains unchanged: %s", c.name, c.rec.Summary))
			case beyondPod(template.Spec.Resources, &c):
				w.unsized = append(w.unsized, c.name+" remains unchanged: the pod sets memory for all containers together "+
					"(spec.resources), and less than that takes: raise it there first")
			default:
				w.sized = append(w.sized, c)
			}
		}
	}
	look("containers", template.Spec.Containers)
	look("initContainers", template.Spec.InitContainers)
	inTemplate := slices.Concat(w.names["containers"], w.names["initContainers"])
	for i := range w.rec.Status.Containers {
		if name := w.rec.Status.Containers[i].Container; !slices.Contains(inTemplate, name) {
			w.unsized = append(w.unsized, name+" is not in the template; something adds it to the pods")
		}
	}
}

// beyondPod: the API server would refuse the size, because the whole pod may have less.
func beyondPod(whole *corev1.ResourceRequirements, c *container) bool {
	if whole == nil {
		return false
	}
	limit, request := c.rec.Recommended.Limit, c.rec.Recommended.Request
	most, all := whole.Limits.Memory(), whole.Requests.Memory()
	return limit != nil && !most.IsZero() && limit.Cmp(*most) > 0 ||
		request != nil && !all.IsZero() && request.Cmp(*c.resources.Requests.Memory()) > 0 && request.Cmp(*all) > 0
}

func (w *workload) recommended(name string) *v1alpha1.ContainerRecommendation {
	for i := range w.rec.Status.Containers {
		if w.rec.Status.Containers[i].Container == name {
			return &w.rec.Status.Containers[i]
		}
	}
	return nil
}
