// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/build"
)

// holds is a cache that holds one snapshot.
type holds struct {
	cache.Cache

	snapshot *v1alpha1.MemorySnapshot
}

func (h holds) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	h.snapshot.DeepCopyInto(into.(*v1alpha1.MemorySnapshot))
	return nil
}

// TestOnlyTheAgentOfThePodsNodeCounts: an agent may write a snapshot under the name of any pod, and name any owner, but
// no other node than its own.
func TestOnlyTheAgentOfThePodsNodeCounts(t *testing.T) {
	owner := func(uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "web", UID: uid}
	}
	for name, tc := range map[string]struct {
		written string // by the agent of this node
		owners  []metav1.OwnerReference
		runs    string // the node of the pod
		want    bool
	}{
		"the agent of its node":      {"node-a", []metav1.OwnerReference{owner("one")}, "node-a", true},
		"of another node":            {"node-b", []metav1.OwnerReference{owner("one")}, "node-a", false},
		"of another pod of the name": {"node-a", []metav1.OwnerReference{owner("two")}, "node-a", false},
		"of several pods":            {"node-a", []metav1.OwnerReference{owner("one"), owner("two")}, "node-a", false},
		"of no pod":                  {"node-a", nil, "node-a", false},
		"before the pod has a node":  {"", []metav1.OwnerReference{owner("one")}, "", false},
	} {
		pod := build.Pod("shop", "web").On(tc.runs).Obj()
		pod.UID = "one"
		w := &Watcher{synced: func() bool { return true }, Cache: holds{snapshot: &v1alpha1.MemorySnapshot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", OwnerReferences: tc.owners},
			Status:     v1alpha1.MemorySnapshotStatus{NodeName: tc.written},
		}}}
		if got := w.Of(t.Context(), []*corev1.Pod{pod}); (got["one"] != nil) != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
