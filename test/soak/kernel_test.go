// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"regexp"
	"strings"
)

// Kill is one OOM kill as the kernel logged it.
type Kill struct {
	// Pod is the UID of the pod, Container the ID of the container, whose process was killed.
	Pod, Container string
	// Task is the name of the process.
	Task string
}

// killLine is written once for each OOM kill, whatever else dies with the process (memory.oom.group).
var killLine = regexp.MustCompile(
	`oom-kill:constraint=CONSTRAINT_MEMCG,.*task_memcg=\S*?/pod([0-9a-f-]{36})/([0-9a-f]{64}),task=([^,]*),`,
)

// KilledLine reports whether a line of the kernel's log reports that a process was killed because its cgroup was full.
// The kernel writes it for every process that it kills, which the line that ReadKill reads it does not: of those it
// writes at most ten in five seconds, on the whole machine (oom_kill_process in mm/oom_kill.c).
func KilledLine(line string) bool {
	return strings.Contains(line, "Memory cgroup out of memory: Killed process")
}

// ReadKill reads a line of the kernel's log; false: it is about something else, or about a process of no pod.
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
