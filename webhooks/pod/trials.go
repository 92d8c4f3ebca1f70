// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/memory"
)

// mostTrials bounds what is remembered. Beyond it this replica changes pods whether they come or not.
const mostTrials = 10_000

// Trials remembers of which workloads no pod was seen since this replica changed some. Nil, or before new pods are
// watched, it knows of none.
type Trials struct {
	// Report reports that new pods of a workload are left unchanged.
	Report func(of memory.Workload, note string)

	mu sync.Mutex
	of map[memory.WorkloadRef]trial // nil: pods are not watched yet
}

// leave reports whether a pod that memfit would change is left unchanged.
func (t *Trials) leave(
	ctx context.Context, pod *metav1.ObjectMeta, of memory.Workload, now time.Time, dryRun bool,
) bool {
	if t == nil || metav1.GetControllerOfNoCopy(pod) == nil { // without a controller, no other pod follows
		return false
	}
	of.Ref = of.Ref.Whole()
	t.mu.Lock()
	before, known := t.of[of.Ref]
	after, leave := before.next(now)
	if !known && len(t.of) >= mostTrials {
		maps.DeleteFunc(t.of, func(_ memory.WorkloadRef, o trial) bool { return o.old(now) })
	}
	if remember := t.of != nil && !dryRun && (known || len(t.of) < mostTrials); remember {
		t.of[of.Ref] = after
	}
	t.mu.Unlock()
	if leave && !dryRun && after.until != before.until {
		note := after.note(of.Ref, now)
		logf.FromContext(ctx).WithName("admission").Info("Leaving new pods unchanged", "workload", of.Ref, "why", note)
		t.Report(of, note)
	}
	return leave
}

// came forgets the trial of a workload of which a pod that memfit changed was created.
func (t *Trials) came(of memory.WorkloadRef) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, of.Whole())
}

// WatchNewPods begins to observe the pods of a cache, which should be those that do not run yet, until ctx ends.
func (h *Injector) WatchNewPods(ctx context.Context, pending cache.Cache) error {
	select {
	case <-h.Resolver.Built(): // until then no profile governs anything
	case <-ctx.Done():
		return nil
	}
	if _, err := informers.Watch(ctx, pending, &corev1.Pod{}, informers.Handler[*corev1.Pod]{
		Seen: func(pod *corev1.Pod) {
			if _, changed := pod.Annotations[v1alpha1.InjectedAnnotation]; !changed {
				return // it proves nothing about what memfit gives
			}
			if resolved, err := h.resolve(ctx, &pod.ObjectMeta); err == nil {
				h.Trials.came(resolved.Ref)
			}
		},
	}); err != nil {
		return err
	}
	if pending.WaitForCacheSync(ctx) {
		h.Trials.begin()
	}
	return nil
}

// begin: from now on each new pod is seen.
func (t *Trials) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of = map[memory.WorkloadRef]trial{}
}
