// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

// Class is the role of a container in its pod.
type Class string

// The classes. A native sidecar is an init container with restartPolicy Always.
const (
	App     Class = "App"
	Init    Class = "Init"
	Sidecar Class = "Sidecar"
)

// Observation is one container's status at one time: plain values, safe to keep after the pod is deleted.
type Observation struct {
	Container memory.ContainerRef
	Class     Class
	// Runtime is the container's runtime in v1alpha1's spelling ("NodeJS", "JVM", "DotNet", ...). Observe leaves it
	// empty; if the caller sets it, exit codes 134 and 3 become heap aborts instead of hints.
	Runtime string
	// HeapCap is the heap cap in the instance's environment; Observe leaves it 0, unknown.
	HeapCap memory.Bytes
	// CapFor is the limit that the heap cap is for, if it is a number that a restart does not change. A full heap is a
	// death at that limit, not at the current one. Observe leaves it 0, unknown.
	CapFor memory.Bytes
	// Measured is when readings of the container's memory began; Observe leaves it zero: none. A kill before the
	// first sample is evidence only for an instance that started after this.
	Measured time.Time
	// LastLook is when memfit, on its own clock, last saw the container before the last of Ended; zero: never. Observe
	// leaves it zero.
	LastLook time.Time
	// Before is the limit at the previous observation, or at creation; Observe leaves it 0, unknown.
	Before memory.Bytes
	// PodCreated is metadata.creationTimestamp.
	PodCreated time.Time
	// Node is the node of the pod. NodeShort is when its MemoryPressure began; zero: no pressure, or unknown.
	// Observe leaves it zero.
	Node      string
	NodeShort time.Time
	// Restarts is the kubelet's restartCount.
	Restarts int32
	// ContainerID is the instance in the status; empty before the first one.
	ContainerID string
	// Running is when the instance started, zero if it is not running.
	Running time.Time
	// Ended are the terminations in the status, oldest first: lastState, then state. Zero to two.
	Ended []Termination
	// Limit is the container's memory limit as its status shows it (status.containerStatuses[].resources, else the spec);
	// 0: none. The ledger decides whether it is effective in the pod (see [Ledger.EffectiveLimit]).
	Limit memory.Bytes
	// High is the container's memory.high by the kubelet's MemoryQoS with defaults, in bytes; 0: none. The pod does not
	// show whether its node has the feature.
	High memory.Bytes
	// PodShort is how much the limit of the pod's cgroup is below the sum of its containers' limits. PodReported: the
	// kubelet reports the pod's cgroup (1.36 and later, while the pod runs).
	PodShort    memory.Bytes
	PodReported bool
	// RestartsOnResize is true if its resizePolicy for memory is RestartContainer.
	RestartsOnResize bool
	// PodLimit is the effective memory limit of the pod; 0: none.
	PodLimit memory.Bytes
	// Ephemeral are the debug sessions in the pod, if its cgroup has a limit, which includes their use.
	Ephemeral []Ephemeral
	// Edited is true if the pod's spec was changed after creation, as by an in-place resize (metadata.generation above 1),
	// so its first instance may have had another limit.
	Edited bool
	// Stopping is why the pod is terminating ("deleted", "Evicted", ...); empty if it is not. It explains a SIGKILL.
	Stopping string
	// StoppingSince is when that began; earlier ends have other causes. Zero: unknown, taken as before everything.
	StoppingSince time.Time
}

// Ephemeral is an ephemeral container (kubectl debug). Finished is zero while it runs.
type Ephemeral struct {
	Name              string
	Started, Finished time.Time
}

// endsTogether is the maximum difference between reported ends of containers that end together (kubectl debug
// --target): times have whole seconds.
const endsTogether = 2 * time.Second

// debugged returns an ephemeral container that ran when an instance ended; empty: none.
func (o *Observation) debugged(t Termination) string {
	for _, e := range o.Ephemeral {
		if !e.Started.After(t.Finished) && (e.Finished.IsZero() || !e.Finished.Before(t.Finished.Add(-endsTogether))) {
			return e.Name
		}
	}
	return ""
}

// pressureLag is how long after a node ran out of memory its kubelet may report that: it compares every 10 s, and
// writes its status every 10 s.
const pressureLag = 20 * time.Second

// nodeShort reports whether the instance ended while its node was short of memory.
func (o *Observation) nodeShort(t Termination) bool {
	return ShortAt(o.NodeShort, t.Finished)
}

// ShortAt reports whether a node whose MemoryPressure began at since was short of memory at a time; since zero: no
// pressure.
func ShortAt(since, at time.Time) bool {
	return !since.IsZero() && !at.Before(since.Add(-pressureLag))
}

// stopped reports whether the instance ended while its pod was terminating.
func (o *Observation) stopped(t Termination) bool {
	return o.Stopping != "" && (o.StoppingSince.IsZero() || !t.Finished.Before(o.StoppingSince))
}

// Termination is one end of one container instance.
type Termination struct {
	// Index counts instances from 0, like the kubelet's restartCount.
	Index       int32
	ContainerID string
	Reason      string
	ExitCode    int32
	Started     time.Time
	Finished    time.Time
	// HeapWords is the part of the termination message about a full heap ("JavaScript heap out of memory"); empty: none.
	HeapWords string
	// NotHeap is true if the termination message names other memory that ran out, as Metaspace.
	NotHeap bool
}

// Observe reads one pod's status: one observation for every app container, init container and native sidecar that has a
// status. Ephemeral containers have none: they have no limit of their own and never restart.
func Observe(pod *corev1.Pod) []Observation {
	if pod == nil {
		return nil
	}
	var out []Observation
	short, reported := podShort(pod)
	sessions := ephemeral(pod)
	add := func(class Class, statuses []corev1.ContainerStatus, specs []corev1.Container) {
		for i := range statuses {
			cs := &statuses[i]
			at := slices.IndexFunc(specs, func(c corev1.Container) bool { return c.Name == cs.Name })
			if at < 0 {
				continue // the node writes statuses, but must not add containers
			}
			o := observe(pod, cs, &specs[at], class)
			o.PodShort, o.PodReported, o.Ephemeral = short, reported, sessions
			out = append(out, o)
		}
	}
	add(Init, pod.Status.InitContainerStatuses, pod.Spec.InitContainers)
	add(App, pod.Status.ContainerStatuses, pod.Spec.Containers)
	return out
}

func ephemeral(pod *corev1.Pod) (all []Ephemeral) {
	if len(pod.Status.EphemeralContainerStatuses) == 0 {
		return nil
	}
	if _, limited := containersLimit(pod); !limited && podLimit(pod) == 0 {
		return nil
	}
	for i := range pod.Status.EphemeralContainerStatuses {
		switch s := &pod.Status.EphemeralContainerStatuses[i]; {
		case s.State.Running != nil:
			all = append(all, Ephemeral{Name: s.Name, Started: s.State.Running.StartedAt.UTC()})
		case s.State.Terminated != nil:
			t := s.State.Terminated
			all = append(all, Ephemeral{s.Name, t.StartedAt.UTC(), t.FinishedAt.UTC()})
		}
	}
	return all
}

func observe(pod *corev1.Pod, cs *corev1.ContainerStatus, spec *corev1.Container, class Class) Observation {
	o := Observation{
		Container:        memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: cs.Name},
		Class:            class,
		PodCreated:       pod.CreationTimestamp.UTC(),
		Node:             pod.Spec.NodeName,
		Restarts:         cs.RestartCount,
		ContainerID:      cs.ContainerID,
		RestartsOnResize: RestartsOnResize(spec),
		PodLimit:         podLimit(pod),
		Edited:           pod.Generation > 1,
	}
	o.Stopping, o.StoppingSince = stopping(pod)
	if class == Init && constraints.Sidecar(spec) {
		o.Class = Sidecar
	}
	has := &spec.Resources
	if cs.Resources != nil { // the effective resources, which lag behind the spec during a resize
		has = cs.Resources
	}
	o.Limit = limitOf(has.Limits)
	o.High = highOf(has.Requests, o.Limit)
	if r := cs.State.Running; r != nil {
		o.Running = r.StartedAt.UTC()
	}
	if t := cs.LastTerminationState.Terminated; t != nil {
		o.Ended = append(o.Ended, termination(t, lastIndex(cs, t)))
	}
	if t := cs.State.Terminated; t != nil {
		o.Ended = append(o.Ended, termination(t, cs.RestartCount))
	}
	return o
}

// RestartsOnResize reports whether the container's resizePolicy for memory is RestartContainer.
func RestartsOnResize(c *corev1.Container) bool {
	for _, p := range c.ResizePolicy {
		if p.ResourceName == corev1.ResourceMemory {
			return p.RestartPolicy == corev1.RestartContainer
		}
	}
	return false
}

// lastIndex returns the number of the instance in lastState. It is restartCount-1, except in CrashLoopBackOff, where
// the kubelet moves the newest end to lastState before restartCount rises.
func lastIndex(cs *corev1.ContainerStatus, last *corev1.ContainerStateTerminated) int32 {
	if cs.State.Waiting != nil && (cs.RestartCount == 0 || cs.ContainerID != "" && cs.ContainerID == last.ContainerID) {
		return cs.RestartCount
	}
	return max(cs.RestartCount-1, 0)
}

func termination(t *corev1.ContainerStateTerminated, index int32) Termination {
	return Termination{
		Index:       index,
		ContainerID: t.ContainerID,
		Reason:      t.Reason,
		ExitCode:    t.ExitCode,
		Started:     t.StartedAt.UTC(),
		Finished:    t.FinishedAt.UTC(),
		HeapWords:   runtimes.HeapWords(t.Message), // terminationMessagePolicy FallbackToLogsOnError brings them here,
		NotHeap:     runtimes.NotHeap(t.Message),
	}
}

// stopping returns the control plane's reason for the termination of the pod, or "deleted", and when it began.
func stopping(pod *corev1.Pod) (string, time.Time) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c.Reason, c.LastTransitionTime.UTC()
		}
	}
	if pod.Status.Reason != "" { // Evicted, Preempting, Shutdown, NodeLost
		return pod.Status.Reason, time.Time{}
	}
	if d := pod.DeletionTimestamp; d != nil { // the time of the request plus the grace period
		since := d.UTC()
		if grace := pod.DeletionGracePeriodSeconds; grace != nil {
			since = since.Add(-time.Duration(*grace) * time.Second)
		}
		return "deleted", since
	}
	return "", time.Time{}
}

// podLimit prefers the effective limit over the spec's. A pod without a pod-level limit in its spec has none: the
// kubelet (seen with 1.36) sets status.resources to the sum of its containers' limits anyway.
func podLimit(pod *corev1.Pod) memory.Bytes {
	if pod.Spec.Resources == nil || limitOf(pod.Spec.Resources.Limits) == 0 {
		return 0
	}
	if pod.Status.Resources != nil {
		return limitOf(pod.Status.Resources.Limits)
	}
	return limitOf(pod.Spec.Resources.Limits)
}

// throttlingPercent is the kubelet's default memoryThrottlingFactor: with the feature gate MemoryQoS, memory.high is at
// this percentage between request and limit.
const throttlingPercent = 90

// highOf returns memory.high for a request and a limit; 0: none, without a limit or with an equal request.
func highOf(requests corev1.ResourceList, limit memory.Bytes) memory.Bytes {
	request := limitOf(requests)
	if limit == 0 || request >= limit {
		return 0
	}
	return request.Plus(limit.Minus(request).Percent(throttlingPercent))
}

func limitOf(limits corev1.ResourceList) memory.Bytes {
	if q, ok := limits[corev1.ResourceMemory]; ok {
		return memory.FromQuantity(q)
	}
	return 0
}
