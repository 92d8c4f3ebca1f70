// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodWrapper builds a pod.
type PodWrapper struct{ pod corev1.Pod }

// Pod begins a pod in phase Running, without containers.
func Pod(namespace, name string) *PodWrapper {
	w := &PodWrapper{}
	w.pod.Namespace, w.pod.Name = namespace, name
	w.pod.Status.Phase = corev1.PodRunning
	return w
}

// Obj returns a copy of the pod.
func (w *PodWrapper) Obj() *corev1.Pod { return w.pod.DeepCopy() }

// Annotate adds annotations, given as key, value, key, value.
func (w *PodWrapper) Annotate(pairs ...string) *PodWrapper {
	w.pod.Annotations = with(w.pod.Annotations, pairs)
	return w
}

// Label adds labels, given as key, value, key, value.
func (w *PodWrapper) Label(pairs ...string) *PodWrapper {
	w.pod.Labels = with(w.pod.Labels, pairs)
	return w
}

// OwnedBy makes owner the pod's controller.
func (w *PodWrapper) OwnedBy(owner metav1.Object, apiVersion, kind string) *PodWrapper {
	w.pod.OwnerReferences = []metav1.OwnerReference{ControllerRef(owner, apiVersion, kind)}
	return w
}

// On sets spec.nodeName.
func (w *PodWrapper) On(node string) *PodWrapper {
	w.pod.Spec.NodeName = node
	return w
}

// Whole sets the pod-level resources (spec.resources).
func (w *PodWrapper) Whole(r corev1.ResourceRequirements) *PodWrapper {
	w.pod.Spec.Resources = &r
	return w
}

// Phase sets status.phase.
func (w *PodWrapper) Phase(phase corev1.PodPhase) *PodWrapper {
	w.pod.Status.Phase = phase
	return w
}

// RestartPolicy sets spec.restartPolicy.
func (w *PodWrapper) RestartPolicy(p corev1.RestartPolicy) *PodWrapper {
	w.pod.Spec.RestartPolicy = p
	return w
}

// ContainerOption changes a container and its status.
type ContainerOption func(*corev1.Container, *corev1.ContainerStatus)

// Container adds an app container, or changes the existing one of this name.
func (w *PodWrapper) Container(name string, options ...ContainerOption) *PodWrapper {
	edit(&w.pod.Spec.Containers, &w.pod.Status.ContainerStatuses, name, options)
	return w
}

// InitContainer adds an init container, or changes the existing one of this name.
func (w *PodWrapper) InitContainer(name string, options ...ContainerOption) *PodWrapper {
	edit(&w.pod.Spec.InitContainers, &w.pod.Status.InitContainerStatuses, name, options)
	return w
}

func edit(containers *[]corev1.Container, statuses *[]corev1.ContainerStatus, name string, options []ContainerOption) {
	at := -1
	for i := range *containers {
		if (*containers)[i].Name == name {
			at = i
		}
	}
	if at < 0 {
		at = len(*containers)
		*containers = append(*containers, corev1.Container{Name: name, Image: "registry.example/" + name + ":1"})
		*statuses = append(*statuses, corev1.ContainerStatus{
			Name: name, Image: "registry.example/" + name + ":1", ContainerID: "containerd://" + name + "-0", Ready: true,
			Started: new(true),
			State:   corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	for _, o := range options {
		o(&(*containers)[at], &(*statuses)[at])
	}
}

// Limit sets the memory limit in spec and status.
func Limit(q string) ContainerOption {
	return func(c *corev1.Container, s *corev1.ContainerStatus) {
		c.Resources.Limits = memory(c.Resources.Limits, q)
		if s.Resources == nil {
			s.Resources = &corev1.ResourceRequirements{}
		}
		s.Resources.Limits = memory(s.Resources.Limits, q)
	}
}

// Request sets the memory request in spec and status.
func Request(q string) ContainerOption {
	return func(c *corev1.Container, s *corev1.ContainerStatus) {
		c.Resources.Requests = memory(c.Resources.Requests, q)
		if s.Resources == nil {
			s.Resources = &corev1.ResourceRequirements{}
		}
		s.Resources.Requests = memory(s.Resources.Requests, q)
	}
}

// Env adds environment variables, given as name, value, name, value.
func Env(pairs ...string) ContainerOption {
	return func(c *corev1.Container, _ *corev1.ContainerStatus) {
		for i := 0; i+1 < len(pairs); i += 2 {
			c.Env = append(c.Env, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
		}
	}
}

// EnvVar adds an environment variable, for example one with valueFrom.
func EnvVar(v corev1.EnvVar) ContainerOption {
	return func(c *corev1.Container, _ *corev1.ContainerStatus) { c.Env = append(c.Env, v) }
}

// EnvFrom adds a ConfigMap as a source of environment variables.
func EnvFrom(configMap string) ContainerOption {
	return func(c *corev1.Container, _ *corev1.ContainerStatus) {
		c.EnvFrom = append(
			c.EnvFrom,
			corev1.EnvFromSource{
				ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}},
			},
		)
	}
}

// Command sets the command line.
func Command(words ...string) ContainerOption {
	return func(c *corev1.Container, _ *corev1.ContainerStatus) { c.Command = words }
}

// Sidecar makes an init container a native sidecar.
func Sidecar() ContainerOption {
	return func(c *corev1.Container, _ *corev1.ContainerStatus) {
		c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	}
}

// Started sets the start time of the running container.
func Started(at time.Time) ContainerOption {
	return func(_ *corev1.Container, s *corev1.ContainerStatus) {
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}
	}
}

// OOMKilled sets the status after an OOM kill at this time and a restart a second later.
func OOMKilled(at time.Time) ContainerOption { return Died(at, "OOMKilled", 137) }

// Died sets the status after a container terminated at this time and restarted a second later.
func Died(at time.Time, reason string, exitCode int32) ContainerOption {
	return func(c *corev1.Container, s *corev1.ContainerStatus) {
		started := at.Add(-time.Minute)
		if s.State.Running != nil && !s.State.Running.StartedAt.IsZero() {
			started = s.State.Running.StartedAt.Time
		}
		s.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: reason, ExitCode: exitCode, StartedAt: metav1.NewTime(started), FinishedAt: metav1.NewTime(at),
			ContainerID: s.ContainerID,
		}}
		s.RestartCount++
		s.ContainerID = fmt.Sprintf("containerd://%s-%d", c.Name, s.RestartCount)
		s.State = corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at.Add(time.Second))},
		}
	}
}

// Ended sets the status of a container that terminated without a restart, as in a Job's pod.
func Ended(at time.Time, reason string, exitCode int32) ContainerOption {
	return func(_ *corev1.Container, s *corev1.ContainerStatus) {
		s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: reason, ExitCode: exitCode, StartedAt: metav1.NewTime(at.Add(-time.Minute)), FinishedAt: metav1.NewTime(at),
			ContainerID: s.ContainerID,
		}}
		s.Ready, s.Started = false, new(false)
	}
}

func memory(list corev1.ResourceList, q string) corev1.ResourceList {
	if list == nil {
		list = corev1.ResourceList{}
	}
	list[corev1.ResourceMemory] = resource.MustParse(q)
	return list
}

func with(m map[string]string, pairs []string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]string{}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}
