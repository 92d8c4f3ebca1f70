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

// maxTrials bounds the recorded workloads. Beyond it, this replica changes pods even if they are refused.
const maxTrials = 10_000

// Trials records the workloads whose pods this replica changed without seeing one created: another admission policy
// may refuse memfit's changes. If nil, or before new pods are watched, it is empty.
type Trials struct {
	// Report reports that new pods of a workload are left unchanged.
	Report func(of memory.Workload, note string)

	mu sync.Mutex
	of map[memory.WorkloadRef]trial // nil: pods are not watched yet
}

// leaveUnchanged reports whether a pod that memfit would change is left unchanged.
func (t *Trials) leaveUnchanged(pod *metav1.ObjectMeta, of memory.WorkloadRef, now time.Time, dryRun bool) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	if t == nil || owner == nil { // without a controller, no other pod follows
		return false
	}
	of = of.Whole()
	t.mu.Lock()
	defer t.mu.Unlock()
	before, known := t.of[of]
	after, unchanged := before.next(now)
	after.owner = owner.UID
	if !known && len(t.of) >= maxTrials {
		maps.DeleteFunc(t.of, func(_ memory.WorkloadRef, o trial) bool { return o.old(now) })
	}
	if remember := t.of != nil && !dryRun && (known || len(t.of) < maxTrials); remember {
		t.of[of] = after
	}
	return unchanged
}

// active reports whether new pods of a workload are left unchanged now.
func (t *Trials) active(of memory.WorkloadRef, now time.Time) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return now.Before(t.of[of.Whole()].until)
}

// mayDecide reports whether a pod that was created may decide a trial. Most need not be looked up.
func (t *Trials) mayDecide(pod *metav1.ObjectMeta) bool {
	_, changed := pod.Annotations[v1alpha1.InjectedAnnotation]
	t.mu.Lock()
	defer t.mu.Unlock()
	for of, o := range t.of {
		if of.Namespace == pod.Namespace && (changed || o.probes) {
			return true
		}
	}
	return false
}

// observe handles a pod that was created: a pod that memfit changed ends its workload's trial.
func (t *Trials) observe(ctx context.Context, pod *metav1.ObjectMeta, of memory.Workload, now time.Time) {
	of.Ref = t.deciding(pod, of.Ref.Whole())
	after, refused := t.compared(pod, of.Ref, now)
	if !refused {
		return
	}
	note := after.note(of.Ref, now)
	logf.FromContext(ctx).WithName("admission").Info("Leaving new pods unchanged", "workload", of.Ref, "why", note)
	t.Report(of, note)
}

// deciding returns the workload whose trial a created pod decides: the workload of its controller, because
// another webhook may have rewritten the labels that identify its workload.
func (t *Trials) deciding(pod *metav1.ObjectMeta, of memory.WorkloadRef) memory.WorkloadRef {
	owner := metav1.GetControllerOfNoCopy(pod)
	t.mu.Lock()
	defer t.mu.Unlock()
	for ref, o := range t.of {
		if owner != nil && o.owner == owner.UID && ref.Namespace == pod.Namespace {
			return ref
		}
	}
	return of
}

// compared returns the trial of a workload after a pod was created, and whether that shows that memfit's changes are
// refused.
func (t *Trials) compared(pod *metav1.ObjectMeta, of memory.WorkloadRef, now time.Time) (after trial, refused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, changed := pod.Annotations[v1alpha1.InjectedAnnotation]; changed {
		delete(t.of, of)
		return trial{}, false
	}
	before, known := t.of[of]
	if after, refused = before.unchangedCreated(now); known {
		t.of[of] = after
	}
	return after, refused
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
			if !h.Trials.mayDecide(&pod.ObjectMeta) {
				return
			}
			if resolved, err := h.resolve(ctx, &pod.ObjectMeta); err == nil {
				of := memory.Workload{Ref: resolved.Ref, UID: resolved.UID}
				h.Trials.observe(ctx, &pod.ObjectMeta, of, h.Clock.Now())
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

// begin starts to record, when each new pod is seen.
func (t *Trials) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of = map[memory.WorkloadRef]trial{}
}
