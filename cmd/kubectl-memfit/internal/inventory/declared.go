// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
)

// Declared are the identities that consist of labels which profiles name, as recommendations have them. The zero value
// has none.
type Declared struct {
	// keys are the lists of labels, by namespace, and names the recommendations.
	keys  map[string][][]string
	names map[types.NamespacedName]bool
}

// DeclaredIn returns the identities that recommendations are about.
func DeclaredIn(recs []v1alpha1.MemoryRecommendation) Declared {
	d := Declared{keys: map[string][][]string{}, names: map[types.NamespacedName]bool{}}
	for i := range recs {
		is, namespace := recs[i].Status.Identity, recs[i].Namespace
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
