// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"bytes"
	"slices"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/internal/boundedjson"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/webhooks/pod"
)

// Rest reads the rest of the review: into a pod the metadata that [Read] found and what a plan is made from besides,
// and whether the request is a dry run. ok is false when anything of it is unusual.
//
// The fields are those of [inject.PodFields].
func (r *Review) Rest(into *corev1.Pod) (outline pod.Outline, dryRun, ok bool) {
	c := r.spec
	into.ObjectMeta = r.Meta
	outline.Annotations = r.Meta.Annotations != nil
	s := spec{c: &c, inMemory: true}
	s.read(&into.Spec, &outline)
	dryRun = afterSpec(&c)
	return outline, dryRun, !c.Unsupported
}

// afterSpec moves over what comes after the pod's spec; dryRun is what the request says.
func afterSpec(c *boundedjson.Scanner) (dryRun bool) {
	rest(c, "metadata", "spec") // of the pod: its status says nothing yet
	var seen uint32
	for key, more := c.Member(); more; key, more = c.Member() { // of the request
		switch string(key) {
		case "dryRun":
			c.Once(&seen, 0)
			dryRun = c.Bool()
		case "uid", "namespace", "object":
			c.Unsupported = true
		default:
			c.Skip()
		}
	}
	rest(c, "apiVersion", "kind", "request") // of the review
	c.End()
	return dryRun
}

// rest moves out of an object of which all that matters was read, and must not come again.
func rest(c *boundedjson.Scanner, read ...string) {
	for key, more := c.Member(); more; key, more = c.Member() {
		if slices.Contains(read, string(key)) {
			c.Unsupported = true
		}
		c.Skip()
	}
}

// spec is a pod's spec as it is read.
type spec struct {
	c *boundedjson.Scanner
	// inMemory is false once it is known that no volume is in memory, so that mounts mean nothing.
	inMemory bool
}

func (s *spec) read(into *corev1.PodSpec, outline *pod.Outline) {
	c := s.c
	var seen uint32
	c.Object()
	for key, more := c.Member(); more; key, more = c.Member() {
		bit, found := specFields.find(key)
		if !found {
			c.Skip()
			continue
		}
		c.Once(&seen, bit)
		switch string(key) {
		case "containers":
			into.Containers, outline.Containers = s.containers()
		case "initContainers":
			into.InitContainers, outline.InitContainers = s.containers()
		case "volumes":
			into.Volumes = volumes(c)
			s.inMemory = len(into.Volumes) > 0
		case "os":
			c.Decode(&into.OS)
		case "resources":
			c.Decode(&into.Resources)
		case "restartPolicy":
			into.RestartPolicy = corev1.RestartPolicy(c.Text())
		case "overhead":
			c.Decode(&into.Overhead)
		case "priorityClassName":
			into.PriorityClassName = c.Text()
		case "activeDeadlineSeconds":
			c.Decode(&into.ActiveDeadlineSeconds)
		default:
			c.Unsupported = true // nobody has taught this reader yet
		}
	}
}

func (s *spec) containers() (out []corev1.Container, resources []pod.Resources) {
	c := s.c
	if c.Null() {
		return nil, nil
	}
	out, resources = make([]corev1.Container, 0, 2), make([]pod.Resources, 0, 2)
	c.Array()
	for c.Item() {
		c.Pay(int(unsafe.Sizeof(corev1.Container{})))
		out, resources = append(out, corev1.Container{}), append(resources, pod.Resources{})
		s.container(&out[len(out)-1], &resources[len(resources)-1])
	}
	return out, resources
}

func (s *spec) container(into *corev1.Container, have *pod.Resources) {
	c := s.c
	var seen uint32
	c.Object()
	for key, more := c.Member(); more; key, more = c.Member() {
		bit, found := containerFields.find(key)
		if !found {
			c.Skip()
			continue
		}
		c.Once(&seen, bit)
		switch string(key) {
		case "name":
			into.Name = c.ASCII()
		case "image":
			into.Image = c.ASCII()
		case "command":
			into.Command = list(c)
		case "args":
			into.Args = list(c)
		case "env":
			into.Env = variables(c)
		case "envFrom":
			c.Decode(&into.EnvFrom)
		case "resources":
			have.Present = !c.Null()
			if have.Present {
				resources(c, &into.Resources)
				have.Limits, have.Requests = into.Resources.Limits != nil, into.Resources.Requests != nil
			}
		case "resizePolicy":
			c.Decode(&into.ResizePolicy)
		case "restartPolicy":
			c.Decode(&into.RestartPolicy)
		case "volumeMounts":
			if !s.inMemory {
				c.Skip()
				continue
			}
			into.VolumeMounts = mounts(c)
		default:
			c.Unsupported = true // nobody has taught this reader yet
		}
	}
}

func list(c *boundedjson.Scanner) []string {
	if c.Null() {
		return nil
	}
	out := make([]string, 0, 4)
	c.Array()
	for c.Item() {
		c.Pay(int(unsafe.Sizeof("")))
		out = append(doubled(out), c.Text())
	}
	return out
}

// variables are a container's env. One with any other source than a field of the pod is decoded the usual way.
func variables(c *boundedjson.Scanner) []corev1.EnvVar {
	if c.Null() {
		return nil
	}
	out := make([]corev1.EnvVar, 0, 8)
	c.Array()
	for c.Item() {
		c.Pay(int(unsafe.Sizeof(corev1.EnvVar{})))
		before := *c
		out = append(doubled(out), corev1.EnvVar{})
		if v := &out[len(out)-1]; !pair(c, v) {
			*c, *v = before, corev1.EnvVar{}
			c.Decode(v)
		}
	}
	return out
}

// doubled is a list with room for one more item. Left alone, a long list grows by a quarter, and costs five times its
// size on the way.
func doubled[T any](list []T) []T {
	if len(list) == cap(list) {
		return slices.Grow(list, len(list)+1)
	}
	return list
}

// pair reads a variable; false when it has more than a name and a value or a field of the pod.
func pair(c *boundedjson.Scanner, into *corev1.EnvVar) bool {
	var seen uint32
	c.Object()
	for key, more := c.Member(); more; key, more = c.Member() {
		switch string(key) {
		case "name":
			c.Once(&seen, 0)
			into.Name = c.Text()
		case "value":
			c.Once(&seen, 1)
			into.Value = c.Text()
		case "valueFrom":
			c.Once(&seen, 2)
			if into.ValueFrom = fromField(c); into.ValueFrom == nil {
				return false
			}
		default:
			return false
		}
	}
	return !c.Unsupported
}

// fromField reads a source that is a field of the pod, which nearly every pod has for its name or address; nil when it
// is another.
func fromField(c *boundedjson.Scanner) *corev1.EnvVarSource {
	var field corev1.ObjectFieldSelector
	var seen uint32
	c.Object()
	if key, more := c.Member(); !more || string(key) != "fieldRef" {
		return nil
	}
	c.Object()
	for key, more := c.Member(); more; key, more = c.Member() {
		switch string(key) {
		case "apiVersion":
			c.Once(&seen, 0)
			field.APIVersion = c.Text()
		case "fieldPath":
			c.Once(&seen, 1)
			field.FieldPath = c.Text()
		default:
			return nil
		}
	}
	if _, more := c.Member(); more || c.Unsupported {
		return nil
	}
	return &corev1.EnvVarSource{FieldRef: &field}
}

// resources are a container's limits and requests. With claims or anything newer, all of it is decoded the usual way.
func resources(c *boundedjson.Scanner, into *corev1.ResourceRequirements) {
	before := *c
	var seen uint32
	c.Object()
	for key, more := c.Member(); more; key, more = c.Member() {
		switch string(key) {
		case "limits":
			c.Once(&seen, 0)
			into.Limits = quantities(c)
		case "requests":
			c.Once(&seen, 1)
			into.Requests = quantities(c)
		default:
			*c, *into = before, corev1.ResourceRequirements{}
			c.Decode(into)
			return
		}
	}
}

func quantities(c *boundedjson.Scanner) corev1.ResourceList {
	if c.Null() {
		return nil
	}
	out := make(corev1.ResourceList, 2)
	var q resource.Quantity // one for all: it goes where it costs an allocation
	c.Object()
	for key, more := c.Member(); more; key, more = c.Member() {
		q = resource.Quantity{}
		value, known := c.Raw(), len(out)
		if c.Unsupported || memory.CheckQuantity(value) != nil || q.UnmarshalJSON(value) != nil {
			c.Unsupported = true
			return nil
		}
		c.Pay(sizeOfPair + int(unsafe.Sizeof(q)))
		out[corev1.ResourceName(c.String(key))] = q
		c.Unsupported = c.Unsupported || len(out) == known // it came twice
	}
	return out
}

// mounts have their volume's name and nothing else.
func mounts(c *boundedjson.Scanner) []corev1.VolumeMount {
	if c.Null() {
		return nil
	}
	out := make([]corev1.VolumeMount, 0, 4)
	c.Array()
	for c.Item() {
		var m corev1.VolumeMount
		var seen uint32
		c.Pay(int(unsafe.Sizeof(m)))
		c.Object()
		for key, more := c.Member(); more; key, more = c.Member() {
			if string(key) == "name" {
				c.Once(&seen, 0)
				m.Name = c.Text()
			} else {
				c.Skip()
			}
		}
		out = append(doubled(out), m)
	}
	return out
}

// volumes are those in memory, which count against the limit. The rest, with their many fields, mean nothing to a plan.
func volumes(c *boundedjson.Scanner) (out []corev1.Volume) {
	if c.Null() {
		return nil
	}
	c.Array()
	for c.Item() {
		before := *c
		if !mayBeInMemory(c.Raw()) {
			continue
		}
		var v corev1.Volume
		*c = before
		c.Pay(int(unsafe.Sizeof(v) + unsafe.Sizeof(corev1.EmptyDirVolumeSource{})))
		if c.Decode(&v); v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory {
			out = append(doubled(out), v)
		}
	}
	return out
}

// mayBeInMemory is false of a volume that certainly is not. A text with escapes may spell anything.
func mayBeInMemory(volume []byte) bool {
	return bytes.Contains(volume, []byte(`"emptyDir"`)) &&
		bytes.Contains(volume, []byte(`"`+string(corev1.StorageMediumMemory)+`"`)) || bytes.IndexByte(volume, '\\') >= 0
}
