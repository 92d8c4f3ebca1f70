// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"path"
	"strings"

	"github.com/memfit/memfit/internal/cgroup"
)

// ParseCgroup reads a container's cgroup path, the id label of cAdvisor's series, which is the only place where they
// name the pod's UID. Both are empty if the path is not that of a pod's container, as for a nested cgroup.
func ParseCgroup(id string) (podUID, containerID string) {
	podUID, ok := cgroup.PodUID(path.Base(path.Dir(id)))
	if !ok {
		return "", ""
	}
	containerID = path.Base(id)
	if scope, ok := strings.CutSuffix(containerID, ".scope"); ok {
		containerID = scope[strings.LastIndexByte(scope, '-')+1:]
	}
	return podUID, containerID
}
