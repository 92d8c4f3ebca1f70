// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/internal/policy"
)

// asked is a cache that notes of what it is asked for an informer. Its informers never run.
type asked struct {
	cache.Cache
	kinds []string
}

func (a *asked) GetInformer(
	_ context.Context, obj client.Object, _ ...cache.InformerGetOption,
) (cache.Informer, error) {
	a.kinds = append(a.kinds, fmt.Sprintf("%T", obj))
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{}, obj, 0, toolscache.Indexers{}), nil
}

func (a *asked) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

// TestAReplicaThatOnlyServesHoldsNoPods: every replica makes a reader for its webhook. Only who asks for a pod, as the
// leader does, makes the cache hold all pods of the cluster.
func TestAReplicaThatOnlyServesHoldsNoPods(t *testing.T) {
	c := &asked{}
	reader, err := policy.NewInformerReader(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	pods := fmt.Sprintf("%T", &corev1.Pod{})
	if slices.Contains(c.kinds, pods) || len(c.kinds) == 0 {
		t.Errorf("a reader starts informers of %v, want others than pods", c.kinds)
	}
	for range 2 {
		if _, err := reader.Pod(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-1"}); err != nil {
			t.Fatal(err)
		}
	}
	c.kinds = slices.DeleteFunc(c.kinds, func(kind string) bool { return kind != pods })
	if len(c.kinds) != 1 {
		t.Errorf("the informer of pods was asked for %d times, want once, when the first pod is", len(c.kinds))
	}
}
