// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"

	corev1 "k8s.io/api/core/v1"
)

// Outline is what Go types cannot tell of a pod as it was sent: whether a parent is there to patch, or has to be added first.
type Outline struct {
	Annotations                bool
	InitContainers, Containers []Resources
}

// Resources of one container: whether the field is there, and its parts.
type Resources struct{ Present, Limits, Requests bool }

// Rest reads the rest of the review: into a pod the metadata that [Read] found and what a plan is made from besides, and whether the
// request is a dry run. ok is false when anything of it is unusual.
//
// A plan is made from the containers' names, commands, variables, resources, resize and restart policies, the volumes in memory and
// the names of the mounts of a pod that has such, and the pod's own resources, OS and restart policy.
func (r *Review) Rest(into *corev1.Pod) (outline Outline, dryRun, ok bool) {
	c := r.spec
	into.ObjectMeta = r.Meta
	outline.Annotations = r.Meta.Annotations != nil
	s := spec{c: &c, inMemory: true}
	s.read(&into.Spec, &outline)
	dryRun = c.afterSpec()
	return outline, dryRun, !c.odd
}

// afterSpec moves over what comes after the pod's spec; dryRun is what the request says.
func (c *cursor) afterSpec() (dryRun bool) {
	for _, more := c.member(); more; _, more = c.member() { // of the pod: its status says nothing yet
		c.skip()
	}
	for key, more := c.member(); more; key, more = c.member() { // of the request
		if string(key) == "dryRun" {
			dryRun = c.flag()
		} else {
			c.skip()
		}
	}
	for _, more := c.member(); more; _, more = c.member() { // of the review
		c.skip()
	}
	return dryRun
}

// spec is a pod's spec as it is read.
type spec struct {
	c *cursor
	// inMemory is false once it is known that no volume is in memory, so that mounts mean nothing.
	inMemory bool
}

func (s *spec) read(into *corev1.PodSpec, outline *Outline) {
	c := s.c
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		switch string(key) {
		case "containers":
			into.Containers, outline.Containers = s.containers()
		case "initContainers":
			into.InitContainers, outline.InitContainers = s.containers()
		case "volumes":
			into.Volumes = volumes(c)
			s.inMemory = len(into.Volumes) > 0
		case "os":
			c.decode(&into.OS)
		case "resources":
			c.decode(&into.Resources)
		case "restartPolicy":
			into.RestartPolicy = corev1.RestartPolicy(c.words())
		default:
			c.skip()
		}
	}
}

func (s *spec) containers() (out []corev1.Container, resources []Resources) {
	c := s.c
	if c.null() {
		return nil, nil
	}
	out, resources = make([]corev1.Container, 0, 2), make([]Resources, 0, 2)
	c.array()
	for c.item() {
		out, resources = append(out, corev1.Container{}), append(resources, Resources{})
		s.container(&out[len(out)-1], &resources[len(resources)-1])
	}
	return out, resources
}

func (s *spec) container(into *corev1.Container, have *Resources) {
	c := s.c
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		switch string(key) {
		case "name":
			into.Name = c.ascii()
		case "command":
			into.Command = list(c)
		case "args":
			into.Args = list(c)
		case "env":
			into.Env = variables(c)
		case "envFrom":
			c.decode(&into.EnvFrom)
		case "resources":
			have.Present = !c.null()
			if have.Present {
				resources(c, &into.Resources)
				have.Limits, have.Requests = into.Resources.Limits != nil, into.Resources.Requests != nil
			}
		case "resizePolicy":
			c.decode(&into.ResizePolicy)
		case "restartPolicy":
			c.decode(&into.RestartPolicy)
		case "volumeMounts":
			if !s.inMemory {
				c.skip()
				continue
			}
			into.VolumeMounts = mounts(c)
		default:
			c.skip()
		}
	}
}

func list(c *cursor) []string {
	if c.null() {
		return nil
	}
	out := make([]string, 0, 4)
	c.array()
	for c.item() {
		out = append(out, c.words())
	}
	return out
}

// variables are a container's env. One with any other source than a field of the pod is decoded the usual way.
func variables(c *cursor) []corev1.EnvVar {
	if c.null() {
		return nil
	}
	out := make([]corev1.EnvVar, 0, 8)
	c.array()
	for c.item() {
		v, before := corev1.EnvVar{}, *c
		if !pair(c, &v) {
			*c, v = before, corev1.EnvVar{}
			c.decode(&v)
		}
		out = append(out, v)
	}
	return out
}

// pair reads a variable; false when it has more than a name and a value or a field of the pod.
func pair(c *cursor, into *corev1.EnvVar) bool {
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		switch string(key) {
		case "name":
			into.Name = c.words()
		case "value":
			into.Value = c.words()
		case "valueFrom":
			if into.ValueFrom = fromField(c); into.ValueFrom == nil {
				return false
			}
		default:
			return false
		}
	}
	return !c.odd
}

// fromField reads a source that is a field of the pod, which nearly every pod has for its name or address; nil when it is another.
func fromField(c *cursor) *corev1.EnvVarSource {
	var field corev1.ObjectFieldSelector
	c.object()
	if key, more := c.member(); !more || string(key) != "fieldRef" {
		return nil
	}
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		switch string(key) {
		case "apiVersion":
			field.APIVersion = c.words()
		case "fieldPath":
			field.FieldPath = c.words()
		default:
			return nil
		}
	}
	if _, more := c.member(); more || c.odd {
		return nil
	}
	return &corev1.EnvVarSource{FieldRef: &field}
}

// resources are a container's limits and requests. With claims or anything newer, all of it is decoded the usual way.
func resources(c *cursor, into *corev1.ResourceRequirements) {
	before := *c
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		switch string(key) {
		case "limits":
			into.Limits = quantities(c)
		case "requests":
			into.Requests = quantities(c)
		default:
			*c, *into = before, corev1.ResourceRequirements{}
			c.decode(into)
			return
		}
	}
}

func quantities(c *cursor) corev1.ResourceList {
	if c.null() {
		return nil
	}
	out := make(corev1.ResourceList, 2)
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		q := out[corev1.ResourceName(key)]
		if value := c.raw(); c.odd || q.UnmarshalJSON(value) != nil {
			c.odd = true
			return nil
		}
		out[corev1.ResourceName(key)] = q
	}
	return out
}

// mounts have their volume's name and nothing else.
func mounts(c *cursor) []corev1.VolumeMount {
	if c.null() {
		return nil
	}
	out := make([]corev1.VolumeMount, 0, 4)
	c.array()
	for c.item() {
		var m corev1.VolumeMount
		c.object()
		for key, more := c.member(); more; key, more = c.member() {
			if string(key) == "name" {
				m.Name = c.words()
			} else {
				c.skip()
			}
		}
		out = append(out, m)
	}
	return out
}

// volumes are those in memory, which count against the limit. The rest, with their many fields, mean nothing to a plan.
func volumes(c *cursor) (out []corev1.Volume) {
	if c.null() {
		return nil
	}
	c.array()
	for c.item() {
		before := *c
		if !mayBeInMemory(c.raw()) {
			continue
		}
		var v corev1.Volume
		*c = before
		if c.decode(&v); v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory {
			out = append(out, v)
		}
	}
	return out
}

// mayBeInMemory is false of a volume that certainly is not. A text with escapes may spell anything.
func mayBeInMemory(volume []byte) bool {
	return bytes.Contains(volume, []byte(`"emptyDir"`)) && bytes.Contains(volume, []byte(`"`+string(corev1.StorageMediumMemory)+`"`)) || bytes.IndexByte(volume, '\\') >= 0
}
