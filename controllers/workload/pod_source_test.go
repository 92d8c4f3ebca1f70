// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/inbox"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
)

func TestBelow(t *testing.T) {
	deployment := func(namespace, name string) memory.WorkloadRef {
		return memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name}
	}
	inbox := inbox.NewInbox()
	for uid, w := range map[types.UID]memory.WorkloadRef{
		"1": deployment("shop", "web"), "2": deployment("shop", "api"), "3": deployment("other", "web"),
	} {
		inbox.AddPod(uid, types.NamespacedName{Namespace: w.Namespace, Name: string(uid)}, w)
	}
	feed := &PodSource{Inbox: inbox, Resolver: policy.New(nil, nil).WithOwnNamespace("memfit-system")}
	named := func(namespace, name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	for name, tc := range map[string]struct {
		kind schema.GroupVersionKind
		obj  *metav1.PartialObjectMetadata
		want map[memory.WorkloadRef]bool
	}{
		"a workload speaks for itself": {
			schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, named("shop", "web"),
			map[memory.WorkloadRef]bool{deployment("shop", "web"): true},
		},
		"a namespace speaks for all in it": {
			schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, named("", "shop"),
			map[memory.WorkloadRef]bool{deployment("shop", "web"): true, deployment("shop", "api"): true},
		},
		"memfit's own speaks for everything": {
			schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, named("", "memfit-system"),
			map[memory.WorkloadRef]bool{
				deployment("shop", "web"): true, deployment("shop", "api"): true, deployment("other", "web"): true,
			},
		},
		"another kind of the same name does not": {
			schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, named("shop", "web"),
			map[memory.WorkloadRef]bool{},
		},
		"nor does a workload that nobody runs pods of": {
			schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, named("shop", "idle"),
			map[memory.WorkloadRef]bool{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[memory.WorkloadRef]bool{}
			for _, w := range feed.workloadsAffectedBy(tc.kind, tc.obj) {
				got[w] = true
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("workloads to look at (-want +got):\n%s", diff)
			}
		})
	}
}
