// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rescue"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/kubelet"
)

const (
	// ramp is a workload of one pod. While its container is not killed, only a loan changes its limit.
	ramp = "ramp"
	// rampLimit is its limit, and oneLoan its limit with a loan.
	rampLimit = 128 * memory.MiB
	oneLoan   = 4 * rampLimit
)

// rescueFault returns a fault about alarms and loans, with the workload ramp.
func rescueFault(name, scenario, promise string, inject func(*testing.T, *world)) fault {
	return fault{
		name: name, scenario: scenario, promise: promise, inject: inject, within: 2 * time.Minute, exits: 1,
		workloads: []workload{{
			name: ramp, replicas: 1, runtime: v1alpha1.RuntimeNative, mode: v1alpha1.SizingInPlace, limit: rampLimit,
			cause: kubelet.KernelOOM, rescue: true,
		}},
	}
}

// rampPod waits for a pod of ramp with a running container.
func (w *world) rampPod(t *testing.T) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	within(t, time.Minute, "a running container", func() error {
		var pods corev1.PodList
		of := client.MatchingLabels{"app": ramp}
		if err := w.client.List(t.Context(), &pods, client.InNamespace(shop), of); err != nil {
			return err
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			if len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Running != nil {
				found = p
				return nil
			}
		}
		return errors.New("none runs")
	})
	return found
}

// alarmSnapshot returns a snapshot with an alarm: a demand of 5 MiB below the limit, growing by 1 MiB a second.
func alarmSnapshot(pod *corev1.Pod, sequence int64) *v1alpha1.MemorySnapshot {
	status := &pod.Status.ContainerStatuses[0]
	_, id, _ := strings.Cut(status.ContainerID, "://")
	limit := memory.FromQuantity(*status.Resources.Limits.Memory())
	return &v1alpha1.MemorySnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		},
		Status: v1alpha1.MemorySnapshotStatus{
			NodeName: pod.Spec.NodeName, Tier: v1alpha1.AgentWatch, CgroupVersion: "v1", ObservedTime: metav1.Now(),
			Alarm: &v1alpha1.Alarm{
				Container: kubelet.Container, ContainerID: id, Sequence: sequence, Time: metav1.NowMicro(),
				Demand: (limit - 5*memory.MiB).Quantity(), Limit: limit.Quantity(),
				GrowthPerSecond: resource.MustParse("1Mi"), TimeToLimitMilliseconds: 5000,
			},
		},
	}
}

// alarm writes a snapshot as the agent of the pod's node does.
func (w *world) alarm(t *testing.T, s *v1alpha1.MemorySnapshot) {
	t.Helper()
	within(t, time.Minute, "an alarm to be written", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var old v1alpha1.MemorySnapshot
		err := w.client.Get(ctx, client.ObjectKeyFromObject(s), &old)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return err
		case err != nil:
			s.ResourceVersion = ""
			return w.client.Create(ctx, s)
		}
		s.ResourceVersion = old.ResourceVersion
		return w.client.Update(ctx, s)
	})
}

// loans returns the loans in the workload's checkpoint.
func (w *world) loans(t *testing.T) []rescue.Loan {
	t.Helper()
	var state rollout.State
	within(t, time.Minute, "the checkpoint to be read", func() error {
		var c v1alpha1.MemoryCheckpoint
		if err := w.client.Get(t.Context(), recommendationOf(ramp), &c); err != nil {
			return err
		}
		if len(c.Status.Sizing) == 0 {
			return nil
		}
		return json.Unmarshal(c.Status.Sizing, &state)
	})
	return state.Loans
}

// limitOf returns the limit in the pod's spec.
func (w *world) limitOf(t *testing.T) memory.Bytes {
	t.Helper()
	return memory.FromQuantity(*w.rampPod(t).Spec.Containers[0].Resources.Limits.Memory())
}

// awaitLoan writes alarms, as an agent does while a container grows, until a higher limit is effective.
func (w *world) awaitLoan(t *testing.T, sequence *int64) {
	t.Helper()
	began := time.Now()
	for {
		pod := w.rampPod(t)
		effective := memory.FromQuantity(*pod.Status.ContainerStatuses[0].Resources.Limits.Memory())
		switch {
		case effective > rampLimit:
			return
		case time.Since(began) > 2*time.Minute:
			t.Fatalf("no loan within 2 minutes: %s", w.report())
		}
		*sequence++
		w.alarm(t, alarmSnapshot(pod, *sequence))
		time.Sleep(2 * time.Second)
	}
}

// checkLoans checks that the limit does not exceed the checkpoint's loans, that no pod ever had more than most, and
// that no loan restarted the container. (judge checks for evictions.)
func (w *world) checkLoans(t *testing.T, most memory.Bytes) {
	t.Helper()
	restarts, kills := int64(w.rampPod(t).Status.ContainerStatuses[0].RestartCount), w.nodes.kills(ramp)
	if restarts > kills {
		t.Errorf("%d restarts of the container, but the test killed it only %d times", restarts, kills)
	}
	if highest := w.nodes.highestOf(ramp); highest > most {
		t.Errorf("a pod had a limit of %s, at most %s is allowed with loans", highest, most)
	}
	limit, lent := w.limitOf(t), rampLimit
	for _, l := range w.loans(t) {
		if l.Returned.IsZero() {
			lent = max(lent, l.To.Limit)
		}
	}
	if limit > lent {
		t.Errorf("the limit is %s, but the checkpoint has loans only up to %s", limit, lent)
	}
}

// lyingAlarms writes alarms that contradict the container, and expects no loan for them.
func lyingAlarms(t *testing.T, w *world) {
	w.awaitLeader(t)
	sequence := int64(100)
	lies := map[string]func(*v1alpha1.MemorySnapshot){
		"another instance": func(s *v1alpha1.MemorySnapshot) { s.Status.Alarm.ContainerID = "other" },
		"another pod":      func(s *v1alpha1.MemorySnapshot) { s.OwnerReferences[0].UID = "other" },
		"another node":     func(s *v1alpha1.MemorySnapshot) { s.Status.NodeName = nodeName(0) + "-other" },
		"no growth":        func(s *v1alpha1.MemorySnapshot) { s.Status.Alarm.GrowthPerSecond = resource.MustParse("0") },
		"negative growth":  func(s *v1alpha1.MemorySnapshot) { s.Status.Alarm.GrowthPerSecond = resource.MustParse("-1Mi") },
		"another limit":    func(s *v1alpha1.MemorySnapshot) { s.Status.Alarm.Limit = resource.MustParse("1Gi") },
		"no sum":           func(s *v1alpha1.MemorySnapshot) { s.Status.Alarm.TimeToLimitMilliseconds = 3_600_000 },
		"an hour ahead":    func(s *v1alpha1.MemorySnapshot) { s.Status.Alarm.Time.Time = time.Now().Add(time.Hour) },
		"an hour behind":   func(s *v1alpha1.MemorySnapshot) { s.Status.Alarm.Time.Time = time.Now().Add(-time.Hour) },
	}
	for began := time.Now(); time.Since(began) < 30*time.Second; {
		for name, lie := range lies {
			sequence++
			s := alarmSnapshot(w.rampPod(t), sequence)
			lie(s)
			w.alarm(t, s)
			time.Sleep(300 * time.Millisecond)
			if limit := w.limitOf(t); limit != rampLimit {
				t.Fatalf("%s: the alarm raised the limit to %s", name, limit)
			}
		}
	}
	honest := alarmSnapshot(w.rampPod(t), sequence+1)
	w.alarm(t, honest)
	within(t, time.Minute, "an honest alarm to get a loan", func() error {
		if w.limitOf(t) != oneLoan {
			return fmt.Errorf("the limit is %s", w.limitOf(t))
		}
		return nil
	})
	for range 20 {
		honest.Annotations = map[string]string{"again": time.Now().String()} // a change, so that the API server writes it
		w.alarm(t, honest)
		time.Sleep(100 * time.Millisecond)
	}
	w.checkLoans(t, oneLoan)
	if n := len(w.loans(t)); n != 1 {
		t.Errorf("%d loans for one honest alarm", n)
	}
}

// holdLoanRequest writes alarms until the leader sends a matching request for a loan, and holds the request.
func (w *world) holdLoanRequest(
	t *testing.T, r *replica, sequence *int64, after bool, match func(*http.Request) bool,
) *heldRequest {
	t.Helper()
	h := r.gate.next(after, match)
	for began := time.Now(); ; {
		*sequence++
		w.alarm(t, alarmSnapshot(w.rampPod(t), *sequence))
		select {
		case <-h.reached:
			return h
		case <-time.After(2 * time.Second):
		}
		if time.Since(began) > 90*time.Second {
			r.gate.resume(h)
			t.Fatalf("the leader sent no request for a loan: %s", w.report())
		}
	}
}

func checkpoints(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/memorycheckpoints/")
}

// dyingLender kills the leader while it lends. A request that it has sent arrives anyway.
func dyingLender(t *testing.T, w *world) {
	var sequence int64
	cases := []struct {
		after bool
		match func(*http.Request) bool
	}{{false, checkpoints}, {true, checkpoints}, {false, resizes}}
	for _, c := range cases {
		leader := w.awaitLeader(t)
		h := w.holdLoanRequest(t, leader, &sequence, c.after, c.match)
		leader.kill()
		time.Sleep(time.Second)
		leader.gate.resume(h)
		<-h.done
		w.checkLoans(t, oneLoan)
		if w.limitOf(t) > rampLimit {
			break
		}
	}
	w.awaitLeader(t)
	w.awaitLoan(t, &sequence)
	time.Sleep(5 * time.Second)
	w.checkLoans(t, oneLoan)
	if n := len(w.loans(t)); n > len(cases) {
		t.Errorf("%d loans, but only %d leaders were killed", n, len(cases))
	}
}

// twoLenders delays the old leader's resize until after the new leader's loan.
func twoLenders(t *testing.T, w *world) {
	var sequence int64
	old := w.awaitLeader(t)
	h := w.holdLoanRequest(t, old, &sequence, false, resizes)
	old.pause()
	within(t, time.Minute, "the other replica to lead", func() error {
		if !w.other(old).leads() {
			return errors.New("it does not lead yet")
		}
		return nil
	})
	w.awaitLoan(t, &sequence)
	lent := w.limitOf(t)
	old.resume()
	old.gate.resume(h)
	<-h.done
	time.Sleep(2 * time.Second)
	if limit := w.limitOf(t); limit < lent {
		t.Errorf("the old leader's resize lowered the limit from %[2]s to %[1]s", limit, lent)
	}
	w.checkLoans(t, oneLoan)
}

// dyingAgent deletes the agent's snapshot after the loan.
func dyingAgent(t *testing.T, w *world) {
	var sequence int64
	w.awaitLeader(t)
	w.awaitLoan(t, &sequence)
	lent := w.limitOf(t)
	if err := w.client.DeleteAllOf(t.Context(), &v1alpha1.MemorySnapshot{}, client.InNamespace(shop)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Second)
	if limit := w.limitOf(t); limit != lent {
		t.Errorf("the limit is %s, instead of %s with the loan", limit, lent)
	}
	w.checkLoans(t, lent)
}
