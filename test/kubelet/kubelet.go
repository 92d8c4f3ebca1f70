// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelet is a synthetic kubelet for tests: it runs the pods of one workload, ends their containers in several
// ways, and returns statuses like a real kubelet's. These do not show everything: only a restart count and the last two
// terminations. The package also counts the actual OOM kills, for comparison with memfit's count.
package kubelet

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// Container is the name of the only container of each pod, which runs Node.js.
const Container = "app"

// Kubelet runs the pods of one workload.
type Kubelet struct {
	// Choose makes every random choice: a number below n.
	Choose func(n int) int
	Now    time.Time
	// Pods are in the order of their creation, including deleted ones.
	Pods []*Pod
	// Kills counts the actual OOM kills.
	Kills   map[memory.OOMKind]int64
	created int
}

// Pod is a pod with one container, as its kubelet knows it.
type Pod struct {
	Name    string
	UID     types.UID
	Created time.Time
	Deleted bool
	// Limit is immediately effective, and Resizes counts its changes.
	Limit   memory.Bytes
	Resizes int64
	// Ready is when the pod is ready to serve.
	Ready time.Time
	// Restarts is the restartCount, and Started the start of the last instance.
	Restarts int32
	Started  time.Time
	// Cause ends every instance until memfit knows the last end. Of earlier ends a status only shows the number, so that
	// all of them must have the same cause.
	Cause Cause
	// Ends counts the ends of instances, and seen those that memfit knows.
	Ends, seen int64

	phase phase
	// newest and last are the ends that the kubelet still knows.
	newest, last *corev1.ContainerStateTerminated
}

// phase is the state of the container.
type phase int

const (
	running phase = iota
	// ended: state.terminated has the last end.
	ended
	// waiting for the back-off: the end has moved to lastState, and restartCount has not risen yet.
	waiting
)

// Cause is the cause of an instance's end.
type Cause int

// The causes. ChildThenStop is the kill of a child process, with an ordinary exit of the container later.
const (
	KernelOOM Cause = iota
	HeapAbort
	LivenessProbe
	OwnError
	ChildThenStop
	causes
)

var endOf = map[Cause]struct {
	reason string
	exit   int32
	kill   memory.OOMKind // empty: not a kill
}{
	KernelOOM:     {"OOMKilled", 137, memory.OOMMainProcess},
	HeapAbort:     {"Error", 134, memory.OOMHeapAbort},
	LivenessProbe: {"Error", 137, ""},
	OwnError:      {"Error", 1, ""},
	ChildThenStop: {"OOMKilled", 143, memory.OOMChildProcess},
}

// New returns a kubelet without pods.
func New(now time.Time, choose func(n int) int) *Kubelet {
	return &Kubelet{Choose: choose, Now: now, Kills: map[memory.OOMKind]int64{}}
}

// Pass lets two seconds to ten minutes pass.
func (k *Kubelet) Pass() { k.Now = k.Now.Add(time.Duration(2+k.Choose(600)) * time.Second) }

// Create starts a pod.
func (k *Kubelet) Create(name string, limit memory.Bytes) *Pod {
	k.created++
	p := &Pod{
		Name: name, UID: types.UID(fmt.Sprintf("uid-%d", k.created)), Created: k.Now, Started: k.Now, Ready: k.Now,
		Limit: limit,
	}
	k.Pods = append(k.Pods, p)
	k.Seen(p, 0)
	return p
}

// Existing returns the pods that are not deleted.
func (k *Kubelet) Existing() []*Pod {
	return slices.DeleteFunc(slices.Clone(k.Pods), func(p *Pod) bool { return p.Deleted })
}

// Seen records that memfit knows the first ends of a pod's container. If it knows all, the next may have another cause.
func (k *Kubelet) Seen(p *Pod, ends int64) {
	if p.seen = max(p.seen, ends); p.seen == p.Ends {
		p.Cause = Cause(k.Choose(int(causes)))
	}
}

// Unseen subtracts the unseen ends of a deleted pod from Kills, because memfit cannot observe them.
func (k *Kubelet) Unseen(p *Pod) {
	if kind := endOf[p.Cause].kill; kind != "" {
		k.Kills[kind] -= p.Ends - p.seen
	}
	p.seen = p.Ends
}

// Continue lets some time pass and moves a container to its next phase: from running to ended, waiting and running.
func (k *Kubelet) Continue(p *Pod) {
	k.Pass()
	switch p.phase {
	case running:
		if p.Cause == ChildThenStop && p.Ends > p.seen {
			return // a status cannot show a second kill of a child
		}
		k.End(p, p.Cause)
	case ended:
		p.phase = waiting
	case waiting:
		k.Start(p)
	}
}

// End ends the running instance.
func (k *Kubelet) End(p *Pod, cause Cause) {
	end := endOf[cause]
	p.last = p.newest
	p.newest = &corev1.ContainerStateTerminated{
		ContainerID: p.instance(), Reason: end.reason, ExitCode: end.exit,
		StartedAt: metav1.NewTime(p.Started), FinishedAt: metav1.NewTime(k.Now),
	}
	p.phase = ended
	p.Ends++
	if end.kill != "" {
		k.Kills[end.kill]++
	}
}

// Start starts the next instance.
func (k *Kubelet) Start(p *Pod) {
	p.Restarts++
	p.phase, p.Started = running, k.Now
}

// Running reports whether the container runs.
func (p *Pod) Running() bool { return p.phase == running }

func (p *Pod) instance() string { return fmt.Sprintf("containerd://%s-%d", p.UID, p.Restarts) }

// Shown returns a pod as the API server returns it.
func (k *Kubelet) Shown(p *Pod) *corev1.Pod {
	amount := corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(int64(p.Limit), resource.BinarySI)}
	has := corev1.ResourceRequirements{Limits: amount, Requests: amount}
	ready, containers := corev1.ConditionFalse, []corev1.ContainerStatus{p.status(&has)}
	if !k.Now.Before(p.Ready) {
		ready, containers[0].Ready = corev1.ConditionTrue, true
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: p.Name, UID: p.UID, CreationTimestamp: metav1.NewTime(p.Created),
			Generation: 1 + p.Resizes,
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1", Containers: []corev1.Container{{Name: Container, Resources: has}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, QOSClass: corev1.PodQOSGuaranteed,
			ContainerStatuses: containers,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
		},
	}
}

func (p *Pod) status(has *corev1.ResourceRequirements) corev1.ContainerStatus {
	s := corev1.ContainerStatus{
		Name: Container, RestartCount: p.Restarts, ContainerID: p.instance(), Resources: has,
	}
	switch p.phase {
	case running:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(p.Started)}
		s.LastTerminationState.Terminated = p.newest
	case ended:
		s.State.Terminated, s.LastTerminationState.Terminated = p.newest, p.last
	case waiting:
		s.ContainerID = p.newest.ContainerID
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		s.LastTerminationState.Terminated = p.newest
	}
	return s
}
