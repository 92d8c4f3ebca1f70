// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"strings"
)

// Ref identifies a container by its cgroup's path.
type Ref struct {
	PodUID      string // as the API server writes it; a static pod has the hash of its manifest instead
	ContainerID string // without the "containerd://" of a pod's status
}

// idLength is the length of a container ID in containerd, CRI-O and Docker: 32 bytes in hexadecimal.
const idLength = 64

// ParsePath finds the container in the path of a cgroup. It takes the first container element, so that nested cgroups
// (systemd in a container) count as that container, and accepts paths relative to another cgroup namespace
// ("/../../burstable/pod…/…"). The layouts are:
//
//	cgroupfs driver   …/kubepods/burstable/pod<uid>/<id>
//	systemd driver    …/kubepods-burstable.slice/kubepods-burstable-pod<uid, _ for ->.slice/cri-containerd-<id>.scope
//	CRI-O, Docker     the same with crio-<id>.scope or docker-<id>.scope
func ParsePath(path string) (Ref, bool) {
	var ref Ref
	for element := range strings.SplitSeq(path, "/") {
		if uid, ok := PodUID(element); ok {
			ref = Ref{PodUID: uid}
		} else if id, ok := containerID(element); ok && ref.PodUID != "" {
			ref.ContainerID = id
			return ref, true
		}
	}
	return Ref{}, false
}

// InContainer reports whether text, a /proc/PID/cgroup, names this container ID: the process is in the cgroup of the
// container or below. In a cgroup namespace of the reader, paths of other containers of its pod lack the pod.
func InContainer(container string, text []byte) bool {
	where, _, ok := MemoryPath(text)
	if !ok {
		return false
	}
	if ref, ok := ParsePath(where); ok {
		return ref.ContainerID == container
	}
	for element := range strings.SplitSeq(where, "/") {
		if id, ok := containerID(element); ok {
			return id == container
		}
	}
	return false
}

// PodUID parses the name of a pod's cgroup, of either driver.
func PodUID(name string) (uid string, ok bool) {
	if slice, ok := strings.CutSuffix(name, ".slice"); ok {
		_, uid, found := strings.Cut(slice, "-pod")
		if !found || !strings.Contains(slice, "kubepods") { // kind has kubelet-kubepods-burstable-pod….slice
			return "", false
		}
		uid = strings.ReplaceAll(uid, "_", "-")
		return uid, isUID(uid)
	}
	uid, ok = strings.CutPrefix(name, "pod")
	return uid, ok && isUID(uid)
}

// isUID reports whether s is a UUID with or without dashes. A static pod has a hash of 32 digits instead.
func isUID(s string) bool {
	digits := 0
	for _, c := range []byte(s) {
		switch {
		case isHex(c):
			digits++
		case c != '-':
			return false
		}
	}
	return digits == 32 && len(s) <= 36
}

// containerID parses the name of a container's cgroup. The cgroup of CRI-O's monitor (crio-conmon-…) is not one.
func containerID(name string) (string, bool) {
	if scope, ok := strings.CutSuffix(name, ".scope"); ok {
		if strings.Contains(scope, "conmon") {
			return "", false
		}
		name = scope[strings.LastIndexByte(scope, '-')+1:]
	}
	if len(name) != idLength {
		return "", false
	}
	for _, c := range []byte(name) {
		if !isHex(c) {
			return "", false
		}
	}
	return name, true
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }

// MemoryPath returns a process's cgroup for memory from the text of /proc/PID/cgroup. On a node with both versions it
// prefers the line of v1's memory controller, because v2 counts nothing there.
func MemoryPath(text []byte) (path string, version Version, ok bool) {
	for line := range bytes.Lines(text) {
		hierarchy, rest, _ := bytes.Cut(bytes.TrimRight(line, "\n"), []byte(":"))
		controllers, where, found := bytes.Cut(rest, []byte(":"))
		if !found {
			continue
		}
		for controller := range bytes.SplitSeq(controllers, []byte(",")) {
			if string(controller) == "memory" {
				return string(where), V1, true
			}
		}
		if string(hierarchy) == "0" && len(controllers) == 0 {
			path, version, ok = string(where), V2, true
		}
	}
	return path, version, ok
}
