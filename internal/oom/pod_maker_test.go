// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// t0 is when everything in these tests begins.
var t0 = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

func at(minutes float64) time.Time {
	return t0.Add(time.Duration(minutes * float64(time.Minute)).Round(time.Second))
}

func stamp(minutes float64) metav1.Time { return metav1.NewTime(at(minutes)) }

// podMaker builds pods as the API server would show them.
type podMaker struct{ pod *corev1.Pod }

func makePod(name string, uid types.UID) podMaker {
	return podMaker{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: uid, Generation: 1, CreationTimestamp: stamp(0),
	}}}
}

func (m podMaker) edit(f func(*corev1.Pod)) podMaker {
	m.pod = m.pod.DeepCopy()
	f(m.pod)
	return m
}

func (m podMaker) created(minutes float64) podMaker {
	return m.edit(func(p *corev1.Pod) { p.CreationTimestamp = stamp(minutes) })
}

// container adds an app container with its status; limit may be empty.
func (m podMaker) container(name, limit string, cs corev1.ContainerStatus) podMaker {
	return m.edit(func(p *corev1.Pod) {
		cs.Name = name
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Resources: memoryLimit(limit)})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, cs)
	})
}

// init adds an init container, a native sidecar when always is set.
func (m podMaker) init(name, limit string, always bool, cs corev1.ContainerStatus) podMaker {
	return m.edit(func(p *corev1.Pod) {
		cs.Name = name
		c := corev1.Container{Name: name, Resources: memoryLimit(limit)}
		if policy := corev1.ContainerRestartPolicyAlways; always {
			c.RestartPolicy = &policy
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, cs)
	})
}

func memoryLimit(limit string) corev1.ResourceRequirements {
	if limit == "" {
		return corev1.ResourceRequirements{}
	}
	return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}}
}

// effective is a status with the limit the kubelet enforces.
func effective(cs corev1.ContainerStatus, limit string) corev1.ContainerStatus {
	r := memoryLimit(limit)
	cs.Resources = &r
	return cs
}

func id(instance int32) string { return fmt.Sprintf("containerd://%060d%04d", 7, instance) }

func running(restarts int32, since float64) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		RestartCount: restarts, ContainerID: id(restarts),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: stamp(since)}},
	}
}

// end is a termination of one instance.
func end(instance int32, reason string, exit int32, started, finished float64) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{
		ContainerID: id(instance), Reason: reason, ExitCode: exit, StartedAt: stamp(started), FinishedAt: stamp(finished),
	}
}

func after(cs corev1.ContainerStatus, last *corev1.ContainerStateTerminated) corev1.ContainerStatus {
	cs.LastTerminationState = corev1.ContainerState{Terminated: last}
	return cs
}

// ended is a container whose newest instance ended and was not started again (yet).
func ended(restarts int32, t *corev1.ContainerStateTerminated) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		RestartCount: restarts, ContainerID: t.ContainerID, State: corev1.ContainerState{Terminated: t},
	}
}

// crashLoop is the same a moment later: the kubelet waits, and has moved the end to lastState without raising
// restartCount.
func crashLoop(restarts int32, t *corev1.ContainerStateTerminated) corev1.ContainerStatus {
	cs := corev1.ContainerStatus{RestartCount: restarts, ContainerID: t.ContainerID}
	cs.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
	return after(cs, t)
}

// peaks answers the question for the highest RSS from a table by container name.
func peaks(byName map[string]memory.Bytes) func(memory.ContainerRef) memory.Bytes {
	return func(ref memory.ContainerRef) memory.Bytes { return byName[ref.Container] }
}
