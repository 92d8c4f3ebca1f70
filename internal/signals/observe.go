// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

// Class is the place a container has in its pod.
type Class string

// The classes. A native sidecar is an init container with restartPolicy Always.
const (
	App     Class = "App"
	Init    Class = "Init"
	Sidecar Class = "Sidecar"
)

// Observation is one look at one container's status: plain values, safe to keep after the pod is gone.
type Observation struct {
	Container memory.ContainerRef
	Class     Class
	// Runtime is what the container runs, as v1alpha1 spells it ("NodeJS", "JVM", "DotNet", ...). Observe leaves it empty; a caller who
	// knows fills it in, and exit codes 134 and 3 become heap aborts instead of hints.
	Runtime string
	// PodCreated is metadata.creationTimestamp.
	PodCreated time.Time
	// Restarts is the kubelet's restartCount.
	Restarts int32
	// ContainerID is the instance status speaks of; empty before the first one exists.
	ContainerID string
	// Running is when the instance started, zero when it does not run.
	Running time.Time
	// Ended are the terminations status still shows, oldest first: lastState, then state. Zero to two.
	Ended []Termination
	// Limit is the container's memory limit in force (status.containerStatuses[].resources, else the spec); 0: none.
	Limit memory.Bytes
	// PodLimit is the pod-level memory limit in force; 0: none.
	PodLimit memory.Bytes
	// Stopping says why somebody is ending the pod ("deleted", "Evicted", ...); empty when nobody is. A SIGKILL is then no riddle.
	Stopping string
}

// Termination is one end of one container instance.
type Termination struct {
	// Index counts instances from 0: restart 0 is the first one.
	Index       int32
	ContainerID string
	Reason      string
	ExitCode    int32
	Signal      int32
	Started     time.Time
	Finished    time.Time
	// HeapWords is what the termination message says about a heap that ran out ("JavaScript heap out of memory"); empty when nothing.
	HeapWords string
}

// Observe reads one pod's status: one observation for every app container, init container and native sidecar that has a status.
// Ephemeral containers are left out: they have no limit of their own and never restart.
func Observe(pod *corev1.Pod) []Observation { return nil }
