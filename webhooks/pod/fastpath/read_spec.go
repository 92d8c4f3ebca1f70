// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"encoding/binary"
	"slices"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/internal/boundedjson"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/webhooks/pod"
)

// Rest reads a template that [Review.AppendTemplate] made of this review: into a pod the metadata that [Read] found and
// what a plan is made from besides. ok is false when anything of it is unusual.
//
// It reads nothing but the template, so pods with one template are read alike.
func (r *Review) Rest(template []byte, into *corev1.Pod) (outline pod.Outline, ok bool) {
	into.ObjectMeta = r.Meta
	outline.Annotations = r.Meta.Annotations != nil
	t := pieces{c: r.spec, text: template}
	t.spec(&into.Spec, &outline)
	return outline, !t.c.Unsupported
}

// pieces reads a template.
type pieces struct {
	c    *boundedjson.Scanner
	text []byte // what of the template is still to come
}

// next moves to the piece that comes next, or over the mark that stands there instead.
func (t *pieces) next() (text []byte, mark byte) {
	if t.c.Unsupported || len(t.text) == 0 {
		return nil, t.broken()
	}
	mark, t.text = t.text[0], t.text[1:]
	if mark != pieceMark {
		return nil, mark
	}
	length, n := binary.Uvarint(t.text)
	if n <= 0 {
		return nil, t.broken()
	}
	rest := t.text[n:]
	if length > uint64(len(rest)) {
		return nil, t.broken()
	}
	text, t.text = rest[:length], rest[length:]
	return text, mark
}

// broken is for what is no template, which ends there.
func (t *pieces) broken() (mark byte) {
	t.c.Unsupported = true
	return endMark
}

// value moves the scanner to the piece that comes next.
func (t *pieces) value() {
	if text, mark := t.next(); mark == pieceMark {
		t.c.Over(text)
	} else {
		t.broken()
	}
}

func (t *pieces) spec(into *corev1.PodSpec, outline *pod.Outline) {
	c := t.c
	for key, mark := t.next(); mark == pieceMark; key, mark = t.next() {
		switch string(key) {
		case "containers":
			into.Containers, outline.Containers = t.containers()
			continue
		case "initContainers":
			into.InitContainers, outline.InitContainers = t.containers()
			continue
		}
		t.value()
		switch string(key) {
		case "volumes":
			into.Volumes = volume(c, into.Volumes)
		case "os":
			c.Decode(&into.OS)
		case "resources":
			c.Decode(&into.Resources)
			if r := into.Resources; r != nil {
				outline.Whole = pod.Resources{Present: true, Limits: r.Limits != nil, Requests: r.Requests != nil}
			}
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
		c.End()
	}
}

func (t *pieces) containers() (out []corev1.Container, resources []pod.Resources) {
	key, mark := t.next()
	if mark == nullMark {
		return nil, nil
	}
	out, resources = make([]corev1.Container, 0, 2), make([]pod.Resources, 0, 2)
	for ; mark != endMark; key, mark = t.next() {
		t.c.Pay(int(unsafe.Sizeof(corev1.Container{})))
		out, resources = append(out, corev1.Container{}), append(resources, pod.Resources{})
		for ; mark == pieceMark; key, mark = t.next() {
			t.value()
			t.member(key, &out[len(out)-1], &resources[len(resources)-1])
			t.c.End()
		}
	}
	return out, resources
}

// member reads a member of a container.
func (t *pieces) member(key []byte, into *corev1.Container, have *pod.Resources) {
	c := t.c
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
		if have.Present = !c.Null(); have.Present {
			resources(c, &into.Resources)
			have.Limits, have.Requests = into.Resources.Limits != nil, into.Resources.Requests != nil
		}
	case "resizePolicy":
		c.Decode(&into.ResizePolicy)
	case "restartPolicy":
		c.Decode(&into.RestartPolicy)
	case "volumeMounts":
		into.VolumeMounts = mounts(c)
	default:
		c.Unsupported = true // nobody has taught this reader yet
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
		start := c.Offset()
		out = append(doubled(out), corev1.EnvVar{})
		if v := &out[len(out)-1]; !variable(c, v) {
			*v = corev1.EnvVar{}
			c.DecodeFrom(start, v)
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

// variable reads a variable; false when it has more than a name and a value or a field of the pod.
func variable(c *boundedjson.Scanner, into *corev1.EnvVar) (all bool) {
	all = true
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
			into.ValueFrom = fromField(c)
			all = all && into.ValueFrom != nil
		default:
			c.Skip()
			all = false
		}
	}
	return all
}

// fromField reads a source that is a field of the pod, which nearly every pod has for its name or address; nil when it
// is another.
func fromField(c *boundedjson.Scanner) *corev1.EnvVarSource {
	var field *corev1.ObjectFieldSelector
	members := 0
	if c.Null() {
		return nil
	}
	c.Object()
	for key, more := c.Member(); more; key, more = c.Member() {
		if members++; string(key) == "fieldRef" {
			field = fieldRef(c)
		} else {
			c.Skip()
		}
	}
	if members != 1 || field == nil {
		return nil
	}
	return &corev1.EnvVarSource{FieldRef: field}
}

func fieldRef(c *boundedjson.Scanner) *corev1.ObjectFieldSelector {
	field, all := &corev1.ObjectFieldSelector{}, true
	var seen uint32
	if c.Null() {
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
			c.Skip()
			all = false
		}
	}
	if !all {
		return nil
	}
	return field
}

// resources are a container's limits and requests. With claims or anything newer, all of it is decoded the usual way.
func resources(c *boundedjson.Scanner, into *corev1.ResourceRequirements) {
	start, all := c.Offset(), true
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
			c.Skip()
			all = false
		}
	}
	if !all {
		*into = corev1.ResourceRequirements{}
		c.DecodeFrom(start, into)
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

// volume appends a volume if it is in memory, which counts against the limit.
func volume(c *boundedjson.Scanner, to []corev1.Volume) []corev1.Volume {
	var v corev1.Volume
	c.Pay(int(unsafe.Sizeof(v) + unsafe.Sizeof(corev1.EmptyDirVolumeSource{})))
	if c.Decode(&v); v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory {
		to = append(doubled(to), v)
	}
	return to
}
