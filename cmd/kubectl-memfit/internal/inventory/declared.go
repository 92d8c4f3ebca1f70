// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
)

// Declared are the identities that consist of labels which profiles name, of pods or of their nodes, as recommendations
// have them. The zero value has none.
type Declared struct {
	// keys are the lists of labels, by namespace, and names the recommendations.
	keys  map[string][][]string
	names map[types.NamespacedName]bool
	// classes are the labels of nodes that keep the pods of DaemonSets apart, and nodes the labels of the nodes.
	classes map[Ref]string
	nodes   map[string]map[string]string
}

// DeclaredIn returns the identities that recommendations are about.
func DeclaredIn(recs []v1alpha1.MemoryRecommendation) Declared {
	d := Declared{
		keys: map[string][][]string{}, names: map[types.NamespacedName]bool{}, classes: map[Ref]string{},
		nodes: map[string]map[string]string{},
	}
	for i := range recs {
		is, namespace := recs[i].Status.Identity, recs[i].Namespace
		if w := refOf(&recs[i]); w.NodeClass != "" && len(is.Labels) == 1 {
			d.classes[w.whole()] = is.Labels[0]
		}
		if is == nil || is.Platform != identity.Labeled {
			continue
		}
		d.names[types.NamespacedName{Namespace: namespace, Name: recs[i].Name}] = true
		same := func(keys []string) bool { return slices.Equal(keys, is.Labels) }
		if !slices.ContainsFunc(d.keys[namespace], same) {
			d.keys[namespace] = append(d.keys[namespace], is.Labels)
		}
	}
	return d
}

// ByNode reports whether the pods of a DaemonSet differ by the labels of their nodes, which [Declared.AddNode] adds.
func (d Declared) ByNode() bool { return len(d.classes) > 0 }

// AddNode adds the labels of a node.
func (d Declared) AddNode(node *metav1.PartialObjectMetadata) { d.nodes[node.Name] = node.Labels }

// workload returns the workload of a pod, with the class of its node.
func (d Declared) workload(pod *corev1.Pod) Ref {
	owner := d.Owner(pod)
	w := Ref{Namespace: pod.Namespace, Kind: owner.Kind, Name: owner.Name}
	w.NodeClass = d.nodes[pod.Spec.NodeName][d.classes[w]]
	return w
}

// Owner is [Owner], with the labels that profiles name.
func (d Declared) Owner(pod metav1.Object) v1alpha1.WorkloadReference {
	return d.Identified(pod, ownerOf(pod))
}

// Identified returns what identifies a pod instead of its owner, or else the owner: labels that a profile names, or the
// table of platforms.
func (d Declared) Identified(pod metav1.Object, owner v1alpha1.WorkloadReference) v1alpha1.WorkloadReference {
	of := memory.WorkloadRef{
		APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: pod.GetNamespace(), Name: owner.Name,
	}
	for _, keys := range append(slices.Clone(d.keys[pod.GetNamespace()]), nil) {
		id, found := identity.Of(pod, of, keys)
		if !found {
			continue
		}
		ref := id.Ref(pod.GetNamespace())
		if keys == nil || d.names[types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}] {
			return v1alpha1.WorkloadReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}
		}
	}
	return owner
}
