// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	stdjson "encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// Outline is what Go types cannot tell of a pod as it was sent: whether a parent is there to patch, or has to be added first.
type Outline struct {
	Annotations                bool
	InitContainers, Containers []Resources
}

// Resources of one container: whether the field is there, and its parts.
type Resources struct{ Present, Limits, Requests bool }

// Pod decodes of a pod what a plan is made from: metadata as [Metadata], and of the spec the containers' names, commands, variables,
// resources, resize and restart policies and mounts, the volumes in memory, the pod's own resources, its OS and restart policy.
func Pod(object []byte, into *corev1.Pod) (outline Outline, ok bool) {
	if !Metadata(object, &into.ObjectMeta) {
		return outline, false
	}
	return Rest(object, into)
}

// Rest decodes what [Pod] does, into a pod that has its metadata already.
func Rest(object []byte, into *corev1.Pod) (outline Outline, ok bool) {
	outline.Annotations = into.Annotations != nil
	usual := true
	ok = members(object, func(key, value []byte) bool {
		if string(key) == "spec" {
			usual = podSpec(value, &into.Spec, &outline)
			return false // a new pod's status says nothing
		}
		return true
	})
	return outline, ok && usual
}

func podSpec(b []byte, into *corev1.PodSpec, outline *Outline) bool {
	usual := true
	ok := members(b, func(key, value []byte) bool {
		switch string(key) {
		case "containers":
			into.Containers, outline.Containers, usual = containers(value)
		case "initContainers":
			into.InitContainers, outline.InitContainers, usual = containers(value)
		case "volumes":
			into.Volumes, usual = volumes(value)
		case "os":
			usual = decode(value, &into.OS)
		case "resources":
			usual = decode(value, &into.Resources)
		case "restartPolicy":
			usual = decode(value, &into.RestartPolicy)
		}
		return usual
	})
	return ok && usual
}

func containers(b []byte) (out []corev1.Container, resources []Resources, ok bool) {
	if string(b) == "null" {
		return nil, nil, true
	}
	out, resources = make([]corev1.Container, 0, 4), make([]Resources, 0, 4)
	ok = items(b, func(item []byte) bool {
		out, resources = append(out, corev1.Container{}), append(resources, Resources{})
		return container(item, &out[len(out)-1], &resources[len(resources)-1])
	})
	return out, resources, ok
}

func container(b []byte, into *corev1.Container, resources *Resources) bool {
	usual := true
	ok := members(b, func(key, value []byte) bool {
		switch string(key) {
		case "name":
			into.Name, usual = plain(value)
		case "command":
			usual = decode(value, &into.Command)
		case "args":
			usual = decode(value, &into.Args)
		case "env":
			into.Env, usual = variables(value)
		case "envFrom":
			usual = decode(value, &into.EnvFrom)
		case "resources":
			if usual = decode(value, &into.Resources); usual {
				*resources = Resources{Present: string(value) != "null", Limits: into.Resources.Limits != nil, Requests: into.Resources.Requests != nil}
			}
		case "resizePolicy":
			usual = decode(value, &into.ResizePolicy)
		case "restartPolicy":
			usual = decode(value, &into.RestartPolicy)
		case "volumeMounts":
			usual = decode(value, &into.VolumeMounts)
		}
		return usual
	})
	return ok && usual
}

// variables are a container's env. A value that is not plain text is decoded the usual way, one by one.
func variables(b []byte) (out []corev1.EnvVar, ok bool) {
	if string(b) == "null" {
		return nil, true
	}
	out = make([]corev1.EnvVar, 0, 8)
	ok = items(b, func(item []byte) bool {
		var v corev1.EnvVar
		usual := true
		if members(item, func(key, value []byte) bool {
			switch string(key) {
			case "name":
				v.Name, usual = plain(value)
			case "value":
				v.Value, usual = plain(value)
			default:
				usual = false
			}
			return usual
		}) && usual {
			out = append(out, v)
			return true
		}
		out = append(out, corev1.EnvVar{})
		return decode(item, &out[len(out)-1])
	})
	return out, ok
}

// volumes are those in memory, which count against the limit. The rest, with their many fields, mean nothing to a plan.
func volumes(b []byte) ([]corev1.Volume, bool) {
	if string(b) == "null" {
		return nil, true
	}
	var out []corev1.Volume
	ok := items(b, func(item []byte) bool {
		if !bytes.Contains(item, []byte(`"emptyDir"`)) {
			return true
		}
		out = append(out, corev1.Volume{})
		return decode(item, &out[len(out)-1])
	})
	return out, ok
}

// appendWarnings ends a response.
func appendWarnings(out []byte, warnings []string) []byte {
	if len(warnings) > 0 {
		text, err := stdjson.Marshal(warnings)
		if err == nil { // strings always marshal
			out = append(append(out, `,"warnings":`...), text...)
		}
	}
	return append(out, '}', '}')
}
