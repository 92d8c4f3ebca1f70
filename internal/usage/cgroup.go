// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import "strings"

// ParseCgroup reads a container's cgroup path, the id label of cAdvisor's series, which is the only place where they
// name the pod's UID: "/kubepods/burstable/pod<uid>/<container>" (cgroupfs driver) or
// "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid with _>.slice/cri-containerd-<container>.scope"
// (systemd driver). Both are empty when the path is not that of a pod's container.
func ParseCgroup(path string) (podUID, containerID string) {
	above, last, ok := cutLast(path, "/")
	if !ok {
		return "", ""
	}
	_, parent, _ := cutLast(above, "/")
	_, uid, ok := cutLast(strings.TrimSuffix(parent, ".slice"), "pod")
	if !ok || !isUID(uid) {
		return "", ""
	}
	if scope, ok := strings.CutSuffix(last, ".scope"); ok {
		_, last, _ = cutLast(scope, "-")
	}
	return strings.ReplaceAll(uid, "_", "-"), last
}

// cutLast cuts around the last sep; without one, everything is after.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+len(sep):], true
}

// isUID distinguishes the UID of a pod (36 characters; 32 for static pods) from other text after "pod" in a path.
func isUID(s string) bool {
	if len(s) != 36 && len(s) != 32 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef-_") == ""
}
