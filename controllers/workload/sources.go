// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
)

// Sources tell what a step decides from, beside the events in the inbox. Each may be nil, as in tests of other things.
type Sources struct {
	// Pods returns pods of the cache, which must not be changed. Nil: the client is asked, which copies them.
	Pods interface {
		Pod(ctx context.Context, key client.ObjectKey) (*corev1.Pod, error)
	}
	// Constraints say what else in the cluster has a say in a workload's memory. Nil: nobody has.
	Constraints interface {
		Facts(ctx context.Context, w memory.WorkloadRef, containers []string, pod *corev1.Pod) (constraints.Facts, error)
	}
	// Snapshots say what the agents of nodes found out about pods. Nil: nobody asks.
	Snapshots interface {
		Of(ctx context.Context, pods []*corev1.Pod) map[types.UID]*v1alpha1.MemorySnapshot
	}
	// Usage says which nodes do not tell what pods use. Nil: nobody knows.
	Usage interface{ Gaps() []memory.Silence }
	// Past is what workloads used before memfit saw them. Nil: nobody knows.
	Past interface {
		Get(w memory.WorkloadRef) (containers map[string]*history.Container, there bool)
		Forget(w memory.WorkloadRef)
		Source() string
	}
	// Queries answers the owners' rollback queries without waiting for Prometheus. Nil: nobody may ask any.
	Queries interface {
		Result(ctx context.Context, query string, now time.Time) rollout.QueryResult
	}
}
