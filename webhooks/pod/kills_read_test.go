// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
)

// apiServer is an API server that has pods, of which no informer hears.
type apiServer struct {
	client.Reader

	mu    sync.Mutex
	pods  []corev1.Pod
	takes time.Duration // to answer a list
	err   error
	lists int // begun
	most  int // under way at once
	now   atomic.Int32
}

func (a *apiServer) has(pod *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods = append(a.pods, *pod)
}

// List answers with the pods that there are when it is called.
func (a *apiServer) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	list, ok := into.(*corev1.PodList)
	if !ok || o.Limit == 0 || o.Raw != nil && o.Raw.ResourceVersion != "" {
		return fmt.Errorf("a list of %T with %+v", into, o)
	}
	first, _ := strconv.Atoi(o.Continue)
	a.mu.Lock()
	var found []corev1.Pod
	for i := range a.pods {
		if p := &a.pods[i]; p.Namespace == o.Namespace && p.Status.Phase == corev1.PodFailed {
			found = append(found, *p)
		}
	}
	a.lists++
	a.most = max(a.most, int(a.now.Add(1)))
	takes, err := a.takes, a.err
	a.mu.Unlock()
	defer a.now.Add(-1)
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	end := min(first+int(o.Limit), len(found))
	list.Items = found[first:end]
	if end < len(found) {
		list.Continue = strconv.Itoa(end)
	}
	return err
}

// inBubble runs a test with a clock that jumps, and waits until no reads are left.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t)
		time.Sleep(2 * readTimeout)
	})
}

// TestTheRetryLivesWithoutInformers: the kill is in the API server, and no informer has delivered it.
func TestTheRetryLivesWithoutInformers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h, clock := replicaOfWebhook(t, v1alpha1.SizingOnCreate)
		live := liveOf(h)
		live.has(killed(taskPod("lint", 0), clock.Now()))
		for run := range 5 {
			pod := admitted(t, h, taskPod("unit", run))
			if died := limitOf(pod) < 100<<20; died != (run == 0) {
				t.Errorf("run %d is created with %d", run, limitOf(pod))
			} else if died {
				live.has(killed(pod, clock.Now()))
			}
		}
		if got := reads(t, h, "ok"); got != 5 {
			t.Errorf("%v pods were admitted after a read", got)
		}
	})
}

// reads returns how many admissions have read, with a result.
func reads(t *testing.T, h *Injector, result string) float64 {
	t.Helper()
	var m dto.Metric
	if err := h.Metrics.reads.WithLabelValues(result).Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// TestAReadBeginsAfterTheAdmission: a read that is under way when a retry arrives does not have its kill.
func TestAReadBeginsAfterTheAdmission(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h, clock := replicaOfWebhook(t, v1alpha1.SizingOnCreate)
		live := liveOf(h)
		live.takes = 100 * time.Millisecond
		var all sync.WaitGroup
		all.Go(func() {
			if pod := admitted(t, h, taskPod("unit", 0)); limitOf(pod) != 64<<20 {
				t.Errorf("the pod before the kill gets %d", limitOf(pod))
			}
		})
		time.Sleep(50 * time.Millisecond)
		live.has(killed(taskPod("unit", 1), clock.Now()))
		for run := range 3 { // they share one read
			all.Go(func() {
				if pod := admitted(t, h, taskPod("unit", 2+run)); limitOf(pod) < 100<<20 {
					t.Errorf("retry %d is created with %d", run, limitOf(pod))
				}
			})
		}
		all.Wait()
		if live.lists != 2 {
			t.Errorf("%d lists, want 2", live.lists)
		}
	})
}

// TestReadsOfTheAPIServerAreBounded: a thousand pods of one step in a minute, in ten seconds and at once; and a
// thousand steps at once.
func TestReadsOfTheAPIServerAreBounded(t *testing.T) {
	const pods = 1000
	for name, tc := range map[string]struct {
		every time.Duration
		steps int
		most  int
	}{
		"in a minute":      {60 * time.Millisecond, 1, pods},
		"in ten seconds":   {10 * time.Millisecond, 1, 201},
		"at once":          {0, 1, 2},
		"of a step each":   {0, pods, pods},
		"of ten at a time": {time.Millisecond, 10, 10 * 21},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h, _ := replicaOfWebhook(t, v1alpha1.SizingOnCreate)
				live := liveOf(h)
				live.takes = time.Millisecond
				var all sync.WaitGroup
				for n := range pods {
					all.Go(func() {
						if err := h.Kills.Read(t.Context(), "ci", step(t, n%tc.steps)); err != nil {
							t.Error(err)
						}
					})
					time.Sleep(tc.every)
				}
				all.Wait()
				if live.lists > tc.most || live.most > maxReads {
					t.Errorf("%d lists, %d at once; want at most %d, %d", live.lists, live.most, tc.most, maxReads)
				}
				time.Sleep(readInterval)
				synctest.Wait()
				if n := len(h.Kills.reads.queues); n != 0 {
					t.Errorf("%d queues are left", n)
				}
				t.Logf("%d lists, %d at once", live.lists, live.most)
			})
		})
	}
}

// step is the identity of a step of a pipeline.
func step(t *testing.T, n int) *identity.Identity {
	t.Helper()
	pod := taskPod(fmt.Sprintf("step-%d", n), 1)
	of := memory.WorkloadRef{APIVersion: "tekton.dev/v1", Kind: "TaskRun", Namespace: "ci", Name: "x"}
	id, found := identity.Find(pod, of, nil)
	if !found {
		t.Fatal("a step has no identity")
	}
	return &id
}

// TestAReadThatFailsAdmits: an API server that is overloaded, or has more failed pods than are read, delays a pod by
// a second at most, and what is known counts.
func TestAReadThatFailsAdmits(t *testing.T) {
	for name, breaks := range map[string]func(*apiServer){
		"refused":  func(a *apiServer) { a.err = errors.New("too many requests") },
		"hangs":    func(a *apiServer) { a.takes = time.Hour },
		"too many": func(a *apiServer) { a.pods = make([]corev1.Pod, maxFailedPages*failedPage+1) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h, clock := replicaOfWebhook(t, v1alpha1.SizingOnCreate)
				live := liveOf(h)
				breaks(live)
				for i := range live.pods {
					live.pods[i] = *killed(taskPod("other", i), clock.Now().Add(-time.Hour))
				}
				began := time.Now()
				if pod := admitted(t, h, taskPod("unit", 1)); limitOf(pod) != 64<<20 {
					t.Errorf("created with %d", limitOf(pod))
				}
				if took := time.Since(began); took > readTimeout {
					t.Errorf("admitted after %s", took)
				}
				h.Kills.Observe(t.Context(), killed(taskPod("unit", 2), clock.Now()))
				if pod := admitted(t, h, taskPod("unit", 3)); limitOf(pod) < 100<<20 {
					t.Errorf("created with %d, although an informer knows the kill", limitOf(pod))
				}
				if got := reads(t, h, "error"); got != 2 {
					t.Errorf("%v failures are counted", got)
				}
			})
		})
	}
}

// TestNothingIsReadWithoutUse: where a kill changes nothing, the API server is not asked.
func TestNothingIsReadWithoutUse(t *testing.T) {
	owned, paused, unlimited := taskPod("unit", 1), taskPod("unit", 2), taskPod("unit", 3)
	owned.OwnerReferences[0].APIVersion, owned.OwnerReferences[0].Kind = "example.com/v1", "Database"
	paused.Annotations[v1alpha1.PauseAnnotation] = "true"
	unlimited.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	for name, tc := range map[string]struct {
		mode v1alpha1.SizingMode
		pod  *corev1.Pod
	}{
		"a profile that only recommends": {v1alpha1.SizingRecommend, taskPod("unit", 0)},
		"an owner that identifies it":    {v1alpha1.SizingOnCreate, owned},
		"a pause":                        {v1alpha1.SizingOnCreate, paused},
		"no limit":                       {v1alpha1.SizingOnCreate, unlimited},
	} {
		h, _ := replicaOfWebhook(t, tc.mode)
		admitted(t, h, tc.pod)
		if n := liveOf(h).lists; n != 0 {
			t.Errorf("%s: %d lists", name, n)
		}
	}
}
