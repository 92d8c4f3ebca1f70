// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

// kindOf returns the kind of an owner, in any version; nil: memfit does not cache objects of this kind.
func kindOf(apiVersion, name string) *workloadkind.Kind {
	if k := workloadkind.InGroup(workloadkind.Group(apiVersion), name); k != nil && k.Watched {
		return k
	}
	return nil
}

// Objects returns one empty object for each kind that has a metadata-only cache.
func Objects() (objects []client.Object) {
	for _, k := range workloadkind.All() {
		if k.Watched {
			objects = append(objects, objectOf(&k))
		}
	}
	return objects
}

// Strip returns a cache transform that keeps only what a Resolver reads of an owner or a namespace: name, UID,
// creation, deletion, its controller, the annotations for which keep is true, and a namespace's labels. The rest, above
// all last-applied copies and managedFields, is most of the size. Common strings are interned to save memory.
func Strip(keep func(annotation string) bool) func(any) (any, error) {
	return func(object any) (any, error) {
		if m, ok := object.(*metav1.PartialObjectMetadata); ok {
			m.TypeMeta = metav1.TypeMeta{APIVersion: intern(m.APIVersion), Kind: intern(m.Kind)}
			m.ObjectMeta = stripped(&m.ObjectMeta, keep)
		}
		return object, nil
	}
}

func stripped(m *metav1.ObjectMeta, keep func(string) bool) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{
		Namespace: intern(m.Namespace), Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
	}
	if m.Namespace == "" { // a namespace, whose labels profiles select
		kept.Labels = m.Labels
	}
	if c := metav1.GetControllerOfNoCopy(m); c != nil {
		kept.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: intern(c.APIVersion), Kind: intern(c.Kind), Name: c.Name, UID: c.UID, Controller: isController},
		}
	}
	for key, value := range m.Annotations {
		if keep(key) {
			metav1.SetMetaDataAnnotation(&kept, intern(key), value)
		}
	}
	return kept
}

// isController is the value of OwnerReference.Controller that all stripped objects share.
var isController = new(true)

func intern(text string) string { return unique.Make(text).Value() }

// Metadata returns an empty object for reading the metadata of a workload; false: memfit does not cache its kind.
func Metadata(of memory.WorkloadRef) (*metav1.PartialObjectMetadata, bool) {
	k := kindOf(of.APIVersion, of.Kind)
	if k == nil {
		return nil, false
	}
	return objectOf(k), true
}

// objectOf returns an empty object for a read.
func objectOf(k *workloadkind.Kind) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: k.APIVersion(), Kind: k.Name}}
}
