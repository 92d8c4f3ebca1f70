// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workload"
)

// Templates are the memory requests in the templates of workloads, by container. One that is not there has none, and no
// limit either that it would follow.
type Templates map[Ref]map[string]memory.Bytes

// Difference is what memfit made of the requests of the running pods of a workload, against what their owners wrote.
type Difference struct {
	// Less was given back, More was added; a pod may have one container of each.
	Less, More memory.Bytes
	// Unknown pods were resized by memfit, and what their owners wrote is not known.
	Unknown int
}

// GivenBack is the difference for each recommendation, by namespace and name. It only counts what memfit did itself:
// sizes that it gave to pods when they were created and that they still have, and pods that no other writer resized
// after it.
type GivenBack struct {
	Differences map[[2]string]Difference

	known     map[Ref]*v1alpha1.MemoryRecommendation
	templates Templates
}

// NewGivenBack returns a count for the workloads of recs.
func NewGivenBack(recs []v1alpha1.MemoryRecommendation, templates Templates) *GivenBack {
	return &GivenBack{Differences: map[[2]string]Difference{}, known: byWorkload(recs), templates: templates}
}

// AddPod counts a pod that runs.
func (g *GivenBack) AddPod(pod *corev1.Pod) {
	owner := Owner(pod)
	w := Ref{pod.Namespace, owner.Kind, owner.Name}
	rec := g.known[w]
	if rec == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	key := [2]string{rec.Namespace, rec.Name}
	d := g.Differences[key]
	d.add(pod, g.templates[w])
	g.Differences[key] = d
}

func (d *Difference) add(pod *corev1.Pod, template map[string]memory.Bytes) {
	if has := constraints.WholeSize(pod).Request; has > 0 { // what the scheduler counts, whatever the containers have
		if before, given, ok := inject.RequestBefore(pod, ""); ok && given == has {
			d.count(before, has)
		}
		return
	}
	resized, unknown := resizedByMemfit(pod), false
	for _, c := range running(pod) {
		has := requestOf(&c.Resources)
		before, given, ok := inject.RequestBefore(pod, c.Name)
		switch {
		case ok && (given == has || resized):
			d.count(before, has)
		case !ok && resized:
			if before, ok = template[c.Name]; ok {
				d.count(before, has)
			} else {
				unknown = true
			}
		}
	}
	if unknown {
		d.Unknown++
	}
}

func (d *Difference) count(before, has memory.Bytes) {
	d.Less, d.More = d.Less.Plus(before.Minus(has)), d.More.Plus(has.Minus(before))
}

// resizedByMemfit: the last one who resized the pod was memfit.
func resizedByMemfit(pod *corev1.Pod) bool {
	return workload.ResizedBy(pod) == "" && slices.ContainsFunc(
		pod.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Subresource == "resize" },
	)
}

// RequestsOf are those of a template. Where only a limit is written, the API server makes it the request, too.
func RequestsOf(spec *corev1.PodSpec) map[string]memory.Bytes {
	out := map[string]memory.Bytes{}
	for _, c := range running(&corev1.Pod{Spec: *spec}) {
		if request := requestOf(&c.Resources); request > 0 {
			out[c.Name] = request
		} else if limit := c.Resources.Limits[corev1.ResourceMemory]; !limit.IsZero() {
			out[c.Name] = memory.FromQuantity(limit)
		}
	}
	return out
}

func requestOf(r *corev1.ResourceRequirements) memory.Bytes {
	return memory.FromQuantity(r.Requests[corev1.ResourceMemory])
}
