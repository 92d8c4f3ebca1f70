// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/workload"
)

// TestFlushWritesSeveralAtOnce: one after the other, ten thousand workloads would not be written in the seconds that
// there are when memfit stops. Here no write ends before there are as many as there are workers.
func TestFlushWritesSeveralAtOnce(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	known := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	var writes atomic.Int32
	together := make(chan struct{})
	api := interceptor.NewClient(
		fake.NewClientBuilder().WithScheme(known).WithStatusSubresource(&v1alpha1.MemoryCheckpoint{}).Build(),
		interceptor.Funcs{SubResourceUpdate: func(
			ctx context.Context, c client.Client, resource string, obj client.Object,
			options ...client.SubResourceUpdateOption,
		) error {
			if writes.Add(1) == workers {
				close(together)
			}
			select {
			case <-together:
				return c.SubResource(resource).Update(ctx, obj, options...)
			case <-ctx.Done():
				return ctx.Err()
			}
		}},
	)
	r := &Reconciler{Client: api, Clock: clocktesting.NewFakePassiveClock(start)}
	var all []client.ObjectKey
	for i := range 2 * workers {
		ref := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: fmt.Sprint("web-", i)}
		uid := types.UID(ref.Name)
		c := &v1alpha1.MemoryCheckpoint{
			ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: policy.RecordName(ref), UID: uid},
		}
		if err := api.Create(ctx, c); err != nil {
			t.Fatal(err)
		}
		e := &entry{state: workload.NewState(), owner: uid}
		e.adopt(c)
		r.states.put(ref, e)
		all = append(all, client.ObjectKeyFromObject(c))
	}
	r.Flush(ctx)
	for _, key := range all {
		var c v1alpha1.MemoryCheckpoint
		if err := api.Get(ctx, key, &c); err != nil || c.Status.Version != v1alpha1.CheckpointVersion {
			t.Errorf("%s is version %d (%v), want %d: it was not written", key, c.Status.Version, err,
				v1alpha1.CheckpointVersion)
		}
	}
}
