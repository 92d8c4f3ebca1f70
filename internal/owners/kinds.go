// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Kind is a kind of owner whose metadata is cached, or is to be read.
type Kind struct {
	GVK schema.GroupVersionKind
	// Intermediate is the column of [workloadkind.Kind].
	Intermediate bool

	apiVersion string // GVK as an owner reference writes it
}

// Kinds are the owners that need a metadata-only cache. Everything else is known by reference only.
var Kinds = watched()

func watched() (kinds []Kind) {
	for _, k := range workloadkind.All() {
		if k.Watched {
			kinds = append(kinds, Kind{
				GVK:          schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Name},
				Intermediate: k.Intermediate, apiVersion: k.APIVersion(),
			})
		}
	}
	return kinds
}

// Objects returns one empty object per kind of the table, as a manager's cache wants them in ByObject.
func Objects() []client.Object {
	objects := make([]client.Object, 0, len(Kinds))
	for i := range Kinds {
		objects = append(objects, Kinds[i].object())
	}
	return objects
}

// Strip returns a cache transform that keeps of an owner or a namespace only what a Resolver reads: name, UID, since
// when it exists and whether it is being deleted, its controller, the annotations for which keep is true, and the labels
// of a namespace. The rest, above all kubectl's last-applied copy and managedFields, is most of what such a cache would
// hold. Texts that many objects have are kept once: the garbage collector walks all of them each time.
func Strip(keep func(annotation string) bool) func(any) (any, error) {
	return func(object any) (any, error) {
		if m, ok := object.(*metav1.PartialObjectMetadata); ok {
			m.TypeMeta = metav1.TypeMeta{APIVersion: once(m.APIVersion), Kind: once(m.Kind)}
			m.ObjectMeta = stripped(&m.ObjectMeta, keep)
		}
		return object, nil
	}
}

func stripped(m *metav1.ObjectMeta, keep func(string) bool) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{
		Namespace: once(m.Namespace), Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
	}
	if m.Namespace == "" { // a namespace, which profiles select by its labels
		kept.Labels = m.Labels
	}
	if c := metav1.GetControllerOfNoCopy(m); c != nil {
		kept.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: once(c.APIVersion), Kind: once(c.Kind), Name: c.Name, UID: c.UID, Controller: controls},
		}
	}
	for key, value := range m.Annotations {
		if !keep(key) {
			continue
		}
		if kept.Annotations == nil {
			kept.Annotations = make(map[string]string, 1)
		}
		kept.Annotations[once(key)] = value
	}
	return kept
}

// controls is the content of a controller's own reference.
var controls = new(true)

func once(text string) string { return unique.Make(text).Value() }

// Metadata is an empty object to read the metadata of a workload with; false for a kind that is known by reference
// only.
func Metadata(of memory.WorkloadRef) (*metav1.PartialObjectMetadata, bool) {
	k := kindOf(of.APIVersion, of.Kind)
	if k == nil {
		return nil, false
	}
	return k.object(), true
}

// object is what to ask a reader with. The TypeMeta is set directly: SetGroupVersionKind would build a string each
// time.
func (k *Kind) object() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: k.apiVersion, Kind: k.GVK.Kind}}
}

// is reports whether an owner reference is of this kind; the version does not matter, the API server serves every
// object in each.
func (k *Kind) is(apiVersion, kind string) bool {
	return k.GVK.Kind == kind && k.GVK.Group == workloadkind.Group(apiVersion)
}
