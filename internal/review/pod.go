// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"slices"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/internal/memory"
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
// the names of the mounts of a pod that has such, and the pod's own resources, OS, restart policy, and overhead; quotas choose pods by
// priority class and deadline.
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
	c.rest("metadata", "spec") // of the pod: its status says nothing yet
	var seen uint32
	for key, more := c.member(); more; key, more = c.member() { // of the request
		switch string(key) {
		case "dryRun":
			c.once(&seen, 0)
			dryRun = c.flag()
		case "uid", "namespace", "object":
			c.odd = true
		default:
			c.skip()
		}
	}
	c.rest("apiVersion", "kind", "request") // of the review
	c.space()
	c.odd = c.odd || c.at < len(c.text)
	return dryRun
}

// rest moves out of an object of which all that matters was read, and must not come again.
func (c *cursor) rest(read ...string) {
	for key, more := c.member(); more; key, more = c.member() {
		if slices.Contains(read, string(key)) {
			c.odd = true
		}
		c.skip()
	}
}

// spec is a pod's spec as it is read.
type spec struct {
	c *cursor
	// inMemory is false once it is known that no volume is in memory, so that mounts mean nothing.
	inMemory bool
}

func (s *spec) read(into *corev1.PodSpec, outline *Outline) {
	c := s.c
	var seen uint32
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		s.once(&seen, key)
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
		case "overhead":
			c.decode(&into.Overhead)
		case "priorityClassName":
			into.PriorityClassName = c.words()
		case "activeDeadlineSeconds":
			c.decode(&into.ActiveDeadlineSeconds)
		default:
			c.skip()
		}
	}
}

// once notes a member of the spec that is read, see [cursor.once].
func (s *spec) once(seen *uint32, key []byte) {
	for i, name := range specMembers {
		if string(key) == name {
			s.c.once(seen, uint(i))
		}
	}
}

// specMembers are the members of a spec that are read.
var specMembers = [...]string{"containers", "initContainers", "volumes", "os", "resources", "restartPolicy"}

func (s *spec) containers() (out []corev1.Container, resources []Resources) {
	c := s.c
	if c.null() {
		return nil, nil
	}
	out, resources = make([]corev1.Container, 0, 2), make([]Resources, 0, 2)
	c.array()
	for c.item() {
		c.pay(int(unsafe.Sizeof(corev1.Container{})))
		out, resources = append(out, corev1.Container{}), append(resources, Resources{})
		s.container(&out[len(out)-1], &resources[len(resources)-1])
	}
	return out, resources
}

func (s *spec) container(into *corev1.Container, have *Resources) {
	c := s.c
	var seen uint32
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		switch string(key) {
		case "name":
			c.once(&seen, 0)
			into.Name = c.ascii()
		case "command":
			c.once(&seen, 1)
			into.Command = list(c)
		case "args":
			c.once(&seen, 2)
			into.Args = list(c)
		case "env":
			c.once(&seen, 3)
			into.Env = variables(c)
		case "envFrom":
			c.once(&seen, 4)
			c.decode(&into.EnvFrom)
		case "resources":
			c.once(&seen, 5)
			have.Present = !c.null()
			if have.Present {
				resources(c, &into.Resources)
				have.Limits, have.Requests = into.Resources.Limits != nil, into.Resources.Requests != nil
			}
		case "resizePolicy":
			c.once(&seen, 6)
			c.decode(&into.ResizePolicy)
		case "restartPolicy":
			c.once(&seen, 7)
			c.decode(&into.RestartPolicy)
		case "volumeMounts":
			c.once(&seen, 8)
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
		c.pay(int(unsafe.Sizeof("")))
		out = append(doubled(out), c.words())
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
		c.pay(int(unsafe.Sizeof(corev1.EnvVar{})))
		v, before := corev1.EnvVar{}, *c
		if !pair(c, &v) {
			*c, v = before, corev1.EnvVar{}
			c.decode(&v)
		}
		out = append(doubled(out), v)
	}
	return out
}

// doubled is a list with room for one more item. Left alone, a long list grows by a quarter, and costs five times its size on the way.
func doubled[T any](list []T) []T {
	if len(list) == cap(list) {
		return slices.Grow(list, len(list)+1)
	}
	return list
}

// pair reads a variable; false when it has more than a name and a value or a field of the pod.
func pair(c *cursor, into *corev1.EnvVar) bool {
	var seen uint32
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		switch string(key) {
		case "name":
			c.once(&seen, 0)
			into.Name = c.words()
		case "value":
			c.once(&seen, 1)
			into.Value = c.words()
		case "valueFrom":
			c.once(&seen, 2)
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
	var seen uint32
	c.object()
	if key, more := c.member(); !more || string(key) != "fieldRef" {
		return nil
	}
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		switch string(key) {
		case "apiVersion":
			c.once(&seen, 0)
			field.APIVersion = c.words()
		case "fieldPath":
			c.once(&seen, 1)
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
	var seen uint32
	c.object()
	for key, more := c.member(); more; key, more = c.member() {
		switch string(key) {
		case "limits":
			c.once(&seen, 0)
			into.Limits = quantities(c)
		case "requests":
			c.once(&seen, 1)
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
		var q resource.Quantity
		value, known := c.raw(), len(out)
		if c.odd || memory.CheckQuantity(value) != nil || q.UnmarshalJSON(value) != nil {
			c.odd = true
			return nil
		}
		c.pay(sizeOfPair + int(unsafe.Sizeof(q)))
		out[corev1.ResourceName(key)] = q
		c.odd = c.odd || len(out) == known // it came twice
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
		var seen uint32
		c.pay(int(unsafe.Sizeof(m)))
		c.object()
		for key, more := c.member(); more; key, more = c.member() {
			if string(key) == "name" {
				c.once(&seen, 0)
				m.Name = c.words()
			} else {
				c.skip()
			}
		}
		out = append(doubled(out), m)
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
		c.pay(int(unsafe.Sizeof(v) + unsafe.Sizeof(corev1.EmptyDirVolumeSource{})))
		if c.decode(&v); v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory {
			out = append(doubled(out), v)
		}
	}
	return out
}

// mayBeInMemory is false of a volume that certainly is not. A text with escapes may spell anything.
func mayBeInMemory(volume []byte) bool {
	return bytes.Contains(volume, []byte(`"emptyDir"`)) && bytes.Contains(volume, []byte(`"`+string(corev1.StorageMediumMemory)+`"`)) || bytes.IndexByte(volume, '\\') >= 0
}
