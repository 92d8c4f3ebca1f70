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

// maxTrials limits the recorded workloads. This replica changes the pods of further workloads even if they are refused.
const maxTrials = 10_000

// Trials has the [trial] of each workload whose pods this replica changed, until it sees a changed pod created. It is
// empty if it is nil, and until [Injector.WatchNewPods] has synced.
type Trials struct {
	// Report is called when memfit begins to leave new pods of a workload unchanged; note explains why.
	Report func(of memory.Workload, note string)

	mu         sync.Mutex
	byWorkload map[memory.WorkloadRef]trial // nil: pods are not watched yet
}

// leaveUnchanged records a new pod that memfit would change, and reports whether to leave it unchanged.
func (t *Trials) leaveUnchanged(pod *metav1.ObjectMeta, of memory.WorkloadRef, now time.Time, dryRun bool) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	if t == nil || owner == nil { // without a controller, no other pod follows
		return false
	}
	of = of.Whole()
	t.mu.Lock()
	defer t.mu.Unlock()
	before, known := t.byWorkload[of]
	after, unchanged := before.next(now)
	after.owner = owner.UID
	if !known && len(t.byWorkload) >= maxTrials {
		maps.DeleteFunc(t.byWorkload, func(_ memory.WorkloadRef, o trial) bool { return o.old(now) })
	}
	if remember := t.byWorkload != nil && !dryRun && (known || len(t.byWorkload) < maxTrials); remember {
		t.byWorkload[of] = after
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
	return now.Before(t.byWorkload[of.Whole()].until)
}

// mayDecide reports whether a created pod may decide a trial. For other pods, the workload need not be resolved.
func (t *Trials) mayDecide(pod *metav1.ObjectMeta) bool {
	_, changed := pod.Annotations[v1alpha1.InjectedAnnotation]
	t.mu.Lock()
	defer t.mu.Unlock()
	for of, o := range t.byWorkload {
		if of.Namespace == pod.Namespace && (changed || o.probing) {
			return true
		}
	}
	return false
}

// observe records a created pod, and reports if it shows that memfit's changes are refused.
func (t *Trials) observe(ctx context.Context, pod *metav1.ObjectMeta, of memory.Workload, now time.Time) {
	of.Ref = t.trialOf(pod, of.Ref.Whole())
	after, refused := t.addCreated(pod, of.Ref, now)
	if !refused {
		return
	}
	note := after.note(of.Ref, now)
	logf.FromContext(ctx).WithName("admission").Info("Leaving new pods unchanged", "workload", of.Ref, "why", note)
	t.Report(of, note)
}

// trialOf returns the workload whose trial a created pod decides: the one whose trial has the pod's controller, because
// another webhook may have rewritten the labels that identify the workload. Without such a trial, it returns of.
func (t *Trials) trialOf(pod *metav1.ObjectMeta, of memory.WorkloadRef) memory.WorkloadRef {
	owner := metav1.GetControllerOfNoCopy(pod)
	t.mu.Lock()
	defer t.mu.Unlock()
	for ref, o := range t.byWorkload {
		if owner != nil && o.owner == owner.UID && ref.Namespace == pod.Namespace {
			return ref
		}
	}
	return of
}

// addCreated returns the trial of a workload after a pod was created, and whether that shows that memfit's changes
// are refused.
func (t *Trials) addCreated(pod *metav1.ObjectMeta, of memory.WorkloadRef, now time.Time) (after trial, refused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, changed := pod.Annotations[v1alpha1.InjectedAnnotation]; changed {
		delete(t.byWorkload, of)
		return trial{}, false
	}
	before, known := t.byWorkload[of]
	if after, refused = before.unchangedCreated(now); known {
		t.byWorkload[of] = after
	}
	return after, refused
}

// WatchNewPods starts to observe the pods of a cache until ctx ends. They should be pods that do not run yet.
func (h *Injector) WatchNewPods(ctx context.Context, pending cache.Cache) error {
	select {
	case <-h.Resolver.Built(): // before that, no profile governs any pod
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

// begin starts recording, once the watch shows every new pod.
func (t *Trials) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byWorkload = map[memory.WorkloadRef]trial{}
}
