// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"regexp"
	"strings"
)

// Kill is one OOM kill as the kernel logged it.
type Kill struct {
	// Pod is the UID of the killed process's pod, Container the ID of its container.
	Pod, Container string
	// Task is the name of the process.
	Task string
}

// killLine is logged once for each OOM kill, even if the kernel kills the whole cgroup (memory.oom.group).
var killLine = regexp.MustCompile(
	`oom-kill:constraint=CONSTRAINT_MEMCG,.*task_memcg=\S*?/pod([0-9a-f-]{36})/([0-9a-f]{64}),task=([^,]*),`,
)

// KilledLine reports whether a line of the kernel's log is about a process that was killed because its cgroup was full.
// The kernel logs this line for every killed process. It rate-limits the lines that ReadKill reads: at most ten in five
// seconds on the whole machine (oom_kill_process in mm/oom_kill.c).
func KilledLine(line string) bool {
	return strings.Contains(line, "Memory cgroup out of memory: Killed process")
}

// ReadKill parses a line of the kernel's log, and returns false if it is not about a kill of a pod's process.
func ReadKill(line string) (Kill, bool) {
	if !strings.Contains(line, "oom-kill:") {
		return Kill{}, false
	}
	m := killLine.FindStringSubmatch(line)
	if m == nil {
		return Kill{}, false
	}
	return Kill{Pod: m[1], Container: m[2], Task: m[3]}, true
}
