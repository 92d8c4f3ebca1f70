// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Ref identifies a workload, or the pods of a DaemonSet on one class of nodes (NodeClass).
type Ref struct{ Namespace, Group, Kind, Name, NodeClass string }

// RefOf returns the Ref of a workload without a node class.
func RefOf(namespace string, w v1alpha1.WorkloadReference) Ref {
	return Ref{Namespace: namespace, Group: workloadkind.Group(w.APIVersion), Kind: w.Kind, Name: w.Name}
}

func (w Ref) whole() Ref {
	w.NodeClass = ""
	return w
}

// Records finds the recommendations of workloads and pods. The zero value has none.
type Records struct {
	of map[Ref]*v1alpha1.MemoryRecommendation
	// labels has, by namespace, the lists of label keys by which profiles identify pods.
	labels map[string][][]string
	// classes has, for a DaemonSet with node classes, the newest recommendation of any class. Only its label key is
	// current: recommendations for a previous label key exist for weeks.
	classes map[Ref]*v1alpha1.MemoryRecommendation
	nodes   map[string]map[string]string // labels by node
}

// RecordsOf returns the records of recommendations. The caller must not change recs afterwards.
func RecordsOf(recs []v1alpha1.MemoryRecommendation) Records {
	r := Records{
		of: map[Ref]*v1alpha1.MemoryRecommendation{}, labels: map[string][][]string{},
		classes: map[Ref]*v1alpha1.MemoryRecommendation{}, nodes: map[string]map[string]string{},
	}
	for i := range recs {
		rec := &recs[i]
		w := RefOf(rec.Namespace, rec.Status.Workload)
		switch id, known := rec.Status.Identity, r.labels[rec.Namespace]; {
		case id == nil:
		case id.Platform == identity.ByNode && len(id.Labels) == 1:
			if last := r.classes[w]; last == nil || last.CreationTimestamp.Before(&rec.CreationTimestamp) {
				r.classes[w] = rec
			}
			w.NodeClass = identity.NodeClassOf(id.Platform, id.Values)
		case id.Platform == identity.Labeled &&
			!slices.ContainsFunc(known, func(keys []string) bool { return slices.Equal(keys, id.Labels) }):
			r.labels[rec.Namespace] = append(known, id.Labels)
		}
		r.of[w] = rec
	}
	return r
}

// ByNode reports whether a DaemonSet has node classes. If so, call [Records.AddNode] for the nodes.
func (r Records) ByNode() bool { return len(r.classes) > 0 }

// AddNode adds the labels of a node.
func (r Records) AddNode(node *metav1.PartialObjectMetadata) { r.nodes[node.Name] = node.Labels }

// Of returns the recommendation of w, or of the whole DaemonSet if the node class has none; nil: none.
func (r Records) Of(w Ref) *v1alpha1.MemoryRecommendation {
	if rec := r.of[w]; rec != nil {
		return rec
	}
	return r.of[w.whole()]
}

// Any returns the recommendation of w, or of another node class of the DaemonSet, which has the same profile.
func (r Records) Any(w Ref) *v1alpha1.MemoryRecommendation {
	return cmp.Or(r.Of(w), r.classes[w.whole()])
}

// OnNode returns w with the class of a node, if w is a DaemonSet with node classes.
func (r Records) OnNode(w Ref, node string) Ref {
	if class := r.classes[w.whole()]; class != nil {
		w.NodeClass = r.nodes[node][class.Status.Identity.Labels[0]]
	}
	return w
}

// workload returns the workload of a pod, with the node class.
func (r Records) workload(pod *corev1.Pod) Ref {
	return r.OnNode(RefOf(pod.Namespace, r.Owner(pod)), pod.Spec.NodeName)
}

// Owner returns the identity of a pod, or its [Owner]. It reads nothing but the pod.
func (r Records) Owner(pod metav1.Object) v1alpha1.WorkloadReference {
	return r.Identified(pod, Owner(pod))
}

// Identified returns the identity of a pod (by a profile's labels or by the table of platforms), otherwise owner.
func (r Records) Identified(pod metav1.Object, owner v1alpha1.WorkloadReference) v1alpha1.WorkloadReference {
	direct := memory.WorkloadRef{
		APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: pod.GetNamespace(), Name: owner.Name,
	}
	for _, keys := range append(slices.Clone(r.labels[pod.GetNamespace()]), nil) {
		id, found := identity.Find(pod, direct, keys)
		if !found {
			continue
		}
		ref := id.Ref(pod.GetNamespace())
		w := v1alpha1.WorkloadReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}
		if keys == nil || r.Of(RefOf(ref.Namespace, w)) != nil {
			return w
		}
	}
	return owner
}

// Owner returns the workload that owns a pod, without reading other objects. It derives a Deployment from the label
// pod-template-hash, and a CronJob from the minute in the name of its Job. Otherwise it returns the pod's controller,
// which may be a ReplicaSet or a Job with an owner.
func Owner(pod metav1.Object) v1alpha1.WorkloadReference {
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		bare := workloadkind.Pod()
		return v1alpha1.WorkloadReference{APIVersion: bare.APIVersion(), Kind: bare.Name, Name: pod.GetName()}
	}
	labels := pod.GetLabels()
	direct := workloadkind.Like(ref.APIVersion, ref.Kind)
	for _, k := range workloadkind.All() {
		base, ok := "", false
		switch {
		case k.HashLabel != "" && labels[k.HashLabel] != "" && direct.HasHash:
			base, ok = strings.CutSuffix(ref.Name, "-"+labels[k.HashLabel])
		case k.PodNames == workloadkind.GeneratedWithTime && direct.PodNames == workloadkind.GeneratedWithIndex:
			base, ok = cronJob(ref.Name, pod.GetCreationTimestamp().Time)
		}
		if ok {
			return v1alpha1.WorkloadReference{APIVersion: k.APIVersion(), Kind: k.Name, Name: base}
		}
	}
	return v1alpha1.WorkloadReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}
}

// cronJob returns the name in "<name>-<minutes since 1970>", if the pod was created in the week after that minute.
func cronJob(job string, born time.Time) (name string, ok bool) {
	i := strings.LastIndexByte(job, '-')
	if i < 1 {
		return "", false
	}
	minutes, err := strconv.ParseInt(job[i+1:], 10, 64)
	age := born.Unix()/60 - minutes
	return job[:i], err == nil && age >= -1 && age < 7*24*60
}
