// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"strconv"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
)

// limit is the memory that a container may use.
type limit struct {
	// effective is the limit of one process: its part of cgroup less volumes and the reserve. 0: no limit.
	effective memory.Bytes
	// cgroup is the limit that the runtime reads. 0: no limit.
	cgroup memory.Bytes
	// size is effective as a quantity, and from its computation: "448Mi" and "512Mi less 64Mi of memory-backed volumes".
	// from is empty for the container's own limit. text has both for users.
	size, from, text string
	by               division // how the owner divides cgroup; without a limit, it has no reserve
	unfit            string   // why no memory is left to derive settings from, and what to change; empty otherwise
}

// division is how the owner divides a container's limit.
type division struct {
	processes int32 // 0: unspecified, as one
	reserve   memory.Bytes
}

func divided(t v1alpha1.TuningSpec) division {
	d := division{reserve: profile.BytesOf(t.Reserve)}
	if t.Processes != nil { // a profile from a file was not validated by the API server
		d.processes = min(max(*t.Processes, 1), maxProcesses)
	}
	return d
}

// parts is at least 1.
func (d division) parts() memory.Bytes { return memory.Bytes(max(d.processes, 1)) }

// of returns one process's part of whole without volumes, and its computation; empty: the whole. With several
// processes, it is in whole MiB, for users.
func (d division) of(whole, volumes memory.Bytes, text string) (part memory.Bytes, why string) {
	part = whole.Minus(volumes).Minus(d.reserve)
	if why = text; volumes > 0 {
		why += fmt.Sprintf(" less %s of memory-backed volumes", exact(volumes))
	}
	if d.reserve > 0 {
		why += fmt.Sprintf(" less %s of tuning.reserve", exact(d.reserve))
	}
	if d.processes > 1 {
		if part /= d.parts(); part > memory.MiB {
			part = part.FloorTo(memory.MiB)
		}
		why += fmt.Sprintf(" over %d processes", d.processes)
	}
	if why == text {
		return part, ""
	}
	return part, why
}

// effectiveLimit returns the smaller of the container's own and the whole pod's memory limit, less what its
// memory-backed volumes may take (tmpfs pages are charged to the writing process), divided as the owner specifies.
func effectiveLimit(own, whole, volumes memory.Bytes, by division) limit {
	l := limit{cgroup: own, text: exact(own), by: by}
	if whole > 0 && (l.cgroup == 0 || whole < l.cgroup) {
		l.cgroup, l.from, l.text = whole, "the pod's limit", "the pod's "+exact(whole)
	}
	if l.cgroup == 0 {
		return limit{from: "no limit", text: "no limit", by: division{processes: by.processes}}
	}
	if left := l.cgroup.Minus(volumes); by.reserve > 0 && by.reserve >= left {
		l.unfit = fmt.Sprintf("tuning.reserve %s is not below the available memory (%s of %s), so nothing is derived "+
			"from the limit: lower reserve, or raise the limit", exact(by.reserve), exact(left), l.text)
	}
	part, why := by.of(l.cgroup, volumes, l.text)
	// 1 byte and not 0, which would mean no limit: every knob then refuses it as too small.
	l.effective, l.size = max(part, 1), exact(part)
	if why != "" {
		l.from, l.text = why, fmt.Sprintf("%s (%s)", l.size, why)
	}
	return l
}

// exact returns b in an exact form ("1500Mi", not 1.5Gi), because the record is read again.
func exact(b memory.Bytes) string {
	unit := memory.KiB
	for unit < memory.GiB && b >= unit<<10 {
		unit <<= 10
	}
	switch {
	case b%unit == 0 || b < 10*unit && b*10%unit == 0: // "1.5Gi" is as exact as "1536Mi"
		return b.String()
	case b%memory.MiB == 0:
		return strconv.FormatInt(int64(b/memory.MiB), 10) + "Mi"
	case b%memory.KiB == 0:
		return strconv.FormatInt(int64(b/memory.KiB), 10) + "Ki"
	}
	return b.String()
}
