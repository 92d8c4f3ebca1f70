// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/workloadkind"
)

func TestStripKeepsWhatAResolverReads(t *testing.T) {
	full := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "7", Generation: 3,
		Labels: map[string]string{"app": "web"},
		Annotations: map[string]string{
			"memfit.dev/profile": "web", "kubectl.kubernetes.io/last-applied-configuration": "{}",
		},
		OwnerReferences: ownedBy("example.com/v1 Web/web"),
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		Finalizers:      []string{"example.com/wait"},

		CreationTimestamp: metav1.Unix(1, 0), DeletionTimestamp: &metav1.Time{Time: time.Unix(2, 0)},
	}}
	want := metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "7",
		Annotations:     map[string]string{"memfit.dev/profile": "web"},
		OwnerReferences: full.OwnerReferences[1:],

		CreationTimestamp: full.CreationTimestamp, DeletionTimestamp: full.DeletionTimestamp,
	}
	got, err := Strip(func(a string) bool { return strings.HasPrefix(a, "memfit.dev/") })(full)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.(*metav1.PartialObjectMetadata).ObjectMeta); diff != "" {
		t.Errorf("stripped (-want +got):\n%s", diff)
	}
}

func TestStripKeepsTheLabelsOfANamespace(t *testing.T) {
	labels := map[string]string{"team": "shop"}
	got, err := Strip(func(string) bool { return false })(
		&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: labels}},
	)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(labels, got.(*metav1.PartialObjectMetadata).Labels); diff != "" {
		t.Errorf("labels of a namespace (-want +got):\n%s", diff)
	}
}

func TestStripLeavesOtherThingsAlone(t *testing.T) {
	for _, in := range []any{nil, "a string", &metav1.Status{Message: "kept"}} {
		got, err := Strip(func(string) bool { return true })(in)
		if err != nil || got != in {
			t.Errorf("Strip(%v) = %v, %v", in, got, err)
		}
	}
}

func TestObjectsAreWhatACacheIsKeyedBy(t *testing.T) {
	objects := Objects()
	if len(objects) == 0 {
		t.Fatal("no kind is watched")
	}
	for _, o := range objects {
		gvk := o.GetObjectKind().GroupVersionKind()
		k := workloadkind.InGroup(gvk.Group, gvk.Kind)
		if k == nil || !k.Watched || k.Version != gvk.Version {
			t.Errorf("an object is a %s", gvk)
		}
	}
}
