// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"strings"
	"time"
)

// The collector runs in threads of its own, whose processor time the kernel counts. The JVM's own figures are worse:
// pauses in wall time, which includes throttling, and from JDK 22 on the processor time of workers without the VM
// thread (JDK-8315149).
var (
	// workers have a number behind a '#'. Serial has none: it collects in the VM thread.
	workers = map[string]bool{"GC Thread": true, "ParGC Thread": true}
	others  = map[string]bool{
		// It also runs other operations with all threads stopped, which take little compared with collections.
		"VM Thread": true,
		// The last name is truncated, of JDK 15 and earlier.
		"G1 Main Marker": true, "G1 Conc": true, "G1 Refine": true, "G1 Service": true, "G1 Young RemSet": true,
	}
)

// times returns the processor times of the collector and of the process.
func (j *jvm) times(flags map[string]uint64) (collector, busy time.Duration, ok bool) {
	parallel := flags["UseG1GC"] != 0 || flags["UseParallelGC"] != 0
	if !parallel && flags["UseSerialGC"] == 0 {
		return 0, 0, false
	}
	all, err := j.s.Times()
	if err != nil {
		return 0, 0, false
	}
	vm, worker := false, false
	for _, one := range all.Threads {
		name, _, _ := strings.Cut(one.Name, "#")
		if !workers[name] && !others[name] {
			continue
		}
		vm, worker = vm || name == "VM Thread", worker || workers[name]
		collector += one.Time
	}
	// The kernel scales times, so the sum over threads may be slightly higher.
	return min(collector, all.Process), all.Process, vm && (worker || !parallel)
}
