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
	// effective is the limit of one process: its share of cgroup, less volumes and the reserve. 0: no limit.
	effective memory.Bytes
	cgroup    memory.Bytes // the limit that the runtime reads. 0: no limit
	size      string       // effective as a quantity: "448Mi"
	from      string       // its computation: "512Mi less 64Mi of memory-backed volumes"; empty: the container's own limit
	text      string       // size and from, for users
	division  division     // without a limit, it has no reserve
	noMemory  string       // why no memory is left to derive settings from, and what to change; empty otherwise
}

// division describes how the owner divides a container's limit.
type division struct {
	processes int32 // 0: unspecified, as one
	reserve   memory.Bytes
}

func divisionOf(t v1alpha1.TuningSpec) division {
	d := division{reserve: profile.BytesOf(t.Reserve)}
	if t.Processes != nil { // a profile from a file was not validated by the API server
		d.processes = min(max(*t.Processes, 1), maxProcesses)
	}
	return d
}

// parts returns the number of processes, at least 1.
func (d division) parts() memory.Bytes { return memory.Bytes(max(d.processes, 1)) }

// partOf returns one process's part of a limit, without volumes and the reserve, and its computation (empty if the part
// is the whole limit). With several processes, the part is rounded down to MiB, for users.
func (d division) partOf(whole, volumes memory.Bytes, text string) (part memory.Bytes, why string) {
	part = whole.Minus(volumes).Minus(d.reserve)
	if why = text; volumes > 0 {
		why += fmt.Sprintf(" less %s of memory-backed volumes", exactText(volumes))
	}
	if d.reserve > 0 {
		why += fmt.Sprintf(" less %s of tuning.reserve", exactText(d.reserve))
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

// effectiveLimit returns the smaller of the container's and the whole pod's memory limit, less the capacity of the
// container's memory-backed volumes (tmpfs pages are charged to the writing process), divided as the owner specifies.
func effectiveLimit(own, whole, volumes memory.Bytes, d division) limit {
	l := limit{cgroup: own, text: exactText(own), division: d}
	if whole > 0 && (l.cgroup == 0 || whole < l.cgroup) {
		l.cgroup, l.from, l.text = whole, "the pod's limit", "the pod's "+exactText(whole)
	}
	if l.cgroup == 0 {
		return limit{from: "no limit", text: "no limit", division: division{processes: d.processes}}
	}
	if left := l.cgroup.Minus(volumes); d.reserve > 0 && d.reserve >= left {
		l.noMemory = fmt.Sprintf("tuning.reserve %s is not below the available memory (%s of %s), so nothing is derived "+
			"from the limit: lower reserve, or raise the limit", exactText(d.reserve), exactText(left), l.text)
	}
	part, why := d.partOf(l.cgroup, volumes, l.text)
	// At least 1 byte, because 0 means no limit. Every knob refuses 1 byte as too small.
	l.effective, l.size = max(part, 1), exactText(part)
	if why != "" {
		l.from, l.text = why, fmt.Sprintf("%s (%s)", l.size, why)
	}
	return l
}

// exactText returns b as a quantity without rounding ("1500Mi", not 1.5Gi), because memfit parses the record again.
func exactText(b memory.Bytes) string {
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
