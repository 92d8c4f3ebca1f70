// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	stdjson "encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// Pod decodes of a pod what a plan is made from: metadata as [Metadata], and of the spec the containers' names, commands, variables,
// resources, resize and restart policies and mounts, the volumes in memory, the pod's own resources, its OS and restart policy.
func Pod(object []byte, into *corev1.Pod) (ok bool) {
	if !Metadata(object, &into.ObjectMeta) {
		return false
	}
	usual := true
	ok = members(object, func(key, value []byte) bool {
		if string(key) == "spec" {
			usual = podSpec(value, &into.Spec)
		}
		return usual
	})
	return ok && usual
}

func podSpec(b []byte, into *corev1.PodSpec) bool {
	usual := true
	ok := members(b, func(key, value []byte) bool {
		switch string(key) {
		case "containers":
			into.Containers, usual = containers(value)
		case "initContainers":
			into.InitContainers, usual = containers(value)
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

func containers(b []byte) ([]corev1.Container, bool) {
	if string(b) == "null" {
		return nil, true
	}
	out := make([]corev1.Container, 0, 4)
	ok := items(b, func(item []byte) bool {
		out = append(out, corev1.Container{})
		return container(item, &out[len(out)-1])
	})
	return out, ok
}

func container(b []byte, into *corev1.Container) bool {
	usual := true
	ok := members(b, func(key, value []byte) bool {
		switch string(key) {
		case "name":
			usual = decode(value, &into.Name)
		case "command":
			usual = decode(value, &into.Command)
		case "args":
			usual = decode(value, &into.Args)
		case "env":
			usual = decode(value, &into.Env)
		case "envFrom":
			usual = decode(value, &into.EnvFrom)
		case "resources":
			usual = decode(value, &into.Resources)
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
