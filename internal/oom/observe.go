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

// Observation is one container's status at one time. It has no references to the pod.
type Observation struct {
	Container memory.ContainerRef
	Class     Class

	// Observe leaves these fields empty; the caller sets them as far as it knows them.

	// Runtime is the container's runtime by its API name ("NodeJS"). With it, the runtime's exit codes for a full heap are
	// heap aborts instead of suspicions.
	Runtime string
	HeapCap memory.Bytes // the heap cap in the instance's environment; 0: unknown
	// CapFor is the limit that HeapCap was derived from, if a restart does not change the cap. A heap abort is then
	// recorded at this limit, not at the current one. 0: unknown.
	CapFor memory.Bytes
	// Measured is when readings of the container's memory began; zero: none. Only an instance that started later can be
	// known to be killed before its first sample.
	Measured          time.Time
	LastSeen          time.Time    // the last observation, on memfit's clock, before the last of Ended; zero: none
	Before            memory.Bytes // the limit at the previous observation, or at creation; 0: unknown
	NodePressureSince time.Time    // when the node's MemoryPressure began; zero: no pressure, or unknown

	PodCreated  time.Time // metadata.creationTimestamp
	Node        string
	Restarts    int32         // the kubelet's restartCount
	ContainerID string        // the instance in the status; empty before the first one
	Running     time.Time     // when the instance started; zero: it is not running
	Ended       []Termination // the terminations in the status, oldest first: lastState, then state
	// Limit is the container's memory limit in its status (status.containerStatuses[].resources), otherwise in its spec;
	// 0: none. It may not be effective in the pod's cgroup (see [Ledger.EffectiveLimit]).
	Limit memory.Bytes
	// High is the container's memory.high if its node enables the kubelet's MemoryQoS with defaults, in bytes; 0: none.
	High     memory.Bytes
	PodShort memory.Bytes // how much the limit of the pod's cgroup is below the sum of its containers' limits
	// PodReported is true if the kubelet reports the pod's cgroup (1.36 and later, while the pod runs).
	PodReported      bool
	RestartsOnResize bool         // the container's resizePolicy for memory is RestartContainer
	PodLimit         memory.Bytes // the effective pod-level limit; 0: none
	Ephemeral        []Ephemeral  // the pod's debug sessions, if the limit of the pod's cgroup includes their usage
	// Edited is true if the pod's spec was changed after creation, for example by a resize (metadata.generation above 1).
	// The first instance may have had another limit.
	Edited   bool
	Stopping string // why the pod is terminating ("deleted", "Evicted", ...), which explains a SIGKILL; empty: it is not
	// StoppingSince is when the termination began. Earlier ends have other causes. Zero: unknown, before all ends.
	StoppingSince time.Time
}

// Ephemeral is an ephemeral container (kubectl debug). Finished is zero while it runs.
type Ephemeral struct {
	Name              string
	Started, Finished time.Time
}

// endsTogether is the largest difference between the reported ends of a container and of a debug session in it (kubectl
// debug --target), which end together. Reported times are in whole seconds.
const endsTogether = 2 * time.Second

// debugSession returns the name of an ephemeral container that ran when an instance ended; empty: none.
func (o *Observation) debugSession(t Termination) string {
	for _, e := range o.Ephemeral {
		if !e.Started.After(t.Finished) && (e.Finished.IsZero() || !e.Finished.Before(t.Finished.Add(-endsTogether))) {
			return e.Name
		}
	}
	return ""
}

// pressureLag bounds the delay of MemoryPressure: the kubelet checks the node's memory every 10 s, and updates the
// node's status every 10 s.
const pressureLag = 20 * time.Second

// nodeShort reports whether the instance ended while its node was short of memory.
func (o *Observation) nodeShort(t Termination) bool {
	return UnderPressureAt(o.NodePressureSince, t.Finished)
}

// UnderPressureAt reports whether a node was short of memory at a time. since is when its MemoryPressure began; zero:
// it has none.
func UnderPressureAt(since, at time.Time) bool {
	return !since.IsZero() && !at.Before(since.Add(-pressureLag))
}

// wasStopping reports whether the instance ended while its pod was terminating.
func (o *Observation) wasStopping(t Termination) bool {
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
	// NotHeap is true if the termination message is about other exhausted memory, such as Metaspace.
	NotHeap bool
}

// Observe returns one observation for every app container, init container and native sidecar that has a status. It
// omits ephemeral containers, which have no limit and never restart.
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
				continue // a node writes the status, and must not add containers
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
	if cs.Resources != nil { // the configured resources, which change later than the spec in a resize
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

// lastIndex returns the index of the instance in lastState. It is restartCount-1, except in CrashLoopBackOff, where the
// kubelet moves the newest end to lastState before it increments restartCount.
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
		HeapWords:   runtimes.HeapWords(t.Message), // logs are in it with terminationMessagePolicy FallbackToLogsOnError
		NotHeap:     runtimes.NotHeap(t.Message),
	}
}

// stopping returns why and since when the pod is terminating: a reason of the control plane, or "deleted"; empty: it is
// not.
func stopping(pod *corev1.Pod) (string, time.Time) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c.Reason, c.LastTransitionTime.UTC()
		}
	}
	if pod.Status.Reason != "" { // Evicted, Preempting, Shutdown, NodeLost
		return pod.Status.Reason, time.Time{}
	}
	if d := pod.DeletionTimestamp; d != nil { // includes the grace period
		since := d.UTC()
		if grace := pod.DeletionGracePeriodSeconds; grace != nil {
			since = since.Add(-time.Duration(*grace) * time.Second)
		}
		return "deleted", since
	}
	return "", time.Time{}
}

// podLimit returns the pod-level limit in the status, otherwise in the spec; 0: none. Without one in the spec, it
// ignores the status, in which the kubelet (1.36) reports the sum of the containers' limits.
func podLimit(pod *corev1.Pod) memory.Bytes {
	if pod.Spec.Resources == nil || limitOf(pod.Spec.Resources.Limits) == 0 {
		return 0
	}
	if pod.Status.Resources != nil {
		return limitOf(pod.Status.Resources.Limits)
	}
	return limitOf(pod.Spec.Resources.Limits)
}

// throttlingPercent is the kubelet's default memoryThrottlingFactor. With the feature gate MemoryQoS, memory.high is
// the request plus this percentage of the difference between limit and request.
const throttlingPercent = 90

// highOf returns memory.high for a request and a limit, in bytes; 0: none, because the request is
// not below a limit.
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
