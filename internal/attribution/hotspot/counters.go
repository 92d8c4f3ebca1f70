// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"context"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/attribution/words"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/internal/procmem/perfdata"
)

// Names of the JVM's counters.
const (
	youngCount, fullCount   = "sun.gc.collector.0.invocations", "sun.gc.collector.1.invocations"
	youngTicks, fullTicks   = "sun.gc.collector.0.time", "sun.gc.collector.1.time"
	youngExit, fullExit     = "sun.gc.collector.0.lastExitTime", "sun.gc.collector.1.lastExitTime"
	youngSize, youngMaxSize = "sun.gc.generation.0.capacity", "sun.gc.generation.0.maxCapacity"
	oldSize, oldMaxSize     = "sun.gc.generation.1.capacity", "sun.gc.generation.1.maxCapacity"
	edenSize, edenUsed      = "sun.gc.generation.0.space.0.capacity", "sun.gc.generation.0.space.0.used"
	oldUsed                 = "sun.gc.generation.1.space.0.used"

	// noSpace is the cause of collections that a larger heap prevents. The program, metaspace and tools cause others.
	lastCause, noSpace = "sun.gc.lastCause", "Allocation Failure"
)

var wantedCounters = map[string]bool{
	youngCount: true, fullCount: true, youngTicks: true, fullTicks: true, youngExit: true, fullExit: true,
	youngSize: true, youngMaxSize: true, oldSize: true, oldMaxSize: true, edenSize: true, edenUsed: true, oldUsed: true,
}

const (
	// watchTime bounds how long the counters are reread until the last collection is a full one. If collections are
	// costly, a second has several. readings is the number of reads: a young collection follows within tens of ms.
	watchTime = time.Second
	readings  = 50
	costly    = 32 // a collector with less than 1/costly of the processor time is not reported
)

// collections returns the counters of Serial if its collections are costly and the heap follows the limit. It rereads
// them until the last collection is a full one, for at most watchTime.
func (r Reader) collections(ctx context.Context, s *attribution.Snapshot, details map[string]int64) map[string]int64 {
	if details["UseSerialGC"] == 0 || details[amounts.HeapFollowsMemory] != 1 || details[amounts.BusyTime] == 0 ||
		details[amounts.CollectorTime] < details[amounts.BusyTime]/costly {
		return nil
	}
	c := counters(s)
	deadline, bounded := ctx.Deadline()
	if c[amounts.Live] > 0 || c[amounts.FullCollections] == 0 || r.Now == nil ||
		bounded && deadline.Sub(r.Now()) < 2*watchTime {
		return c
	}
	every := time.NewTicker(watchTime / readings)
	defer every.Stop()
	for range readings {
		select {
		case <-ctx.Done():
			return c
		case <-every.C:
		}
		if again := counters(s); again[amounts.Live] > 0 {
			return again
		}
	}
	return c
}

// counters returns the current counters as details; nil if they are unreadable, or the heap is below its maximum.
func counters(s *attribution.Snapshot) map[string]int64 {
	m := perfdata.Mapping(s.Mappings)
	if m == nil {
		return nil
	}
	r := words.New(s, perfdata.Max/procmem.PageSize+1)
	defer r.Close()
	used, err := r.Uint32(m.Start + perfdata.Used)
	if err != nil {
		return nil
	}
	b := make([]byte, min(uint64(used), m.Size(), perfdata.Max))
	defer clear(b) // b also holds the program's command line
	if r.Read(b, m.Start) != nil {
		return nil
	}
	c, full := map[string]int64{}, false
	err = perfdata.Each(b, func(e perfdata.Entry) {
		name := string(e.Name)
		if wantedCounters[name] && e.Value >= 0 {
			c[name] = e.Value
		}
		full = full || name == lastCause && string(e.Text) == noSpace
	})
	if err != nil || len(c) < len(wantedCounters) || c[youngSize] < c[youngMaxSize] || c[oldSize] < c[oldMaxSize] {
		return nil
	}
	d := map[string]int64{
		amounts.YoungCollections: c[youngCount], amounts.YoungTime: c[youngTicks],
		amounts.FullCollections: c[fullCount], amounts.FullTime: c[fullTicks],
		amounts.Eden: c[edenSize], amounts.Old: c[oldSize],
	}
	if full && c[fullExit] > c[youngExit] {
		d[amounts.Live] = int64(memory.Bytes(c[oldUsed]).Plus(memory.Bytes(c[edenUsed])))
	}
	return d
}

// Names of the collector's threads, whose processor time the kernel counts. The JVM's own figures are worse: the wall
// time of pauses includes throttling, and since JDK 22 the processor time lacks the VM thread (JDK-8315149).
var (
	// workers has names of threads, without the '#' and number at their end. Serial has no workers: it collects in the VM
	// thread.
	workers = map[string]bool{"GC Thread": true, "ParGC Thread": true}
	others  = map[string]bool{
		// The VM thread also runs other operations, which take little time compared with collections.
		"VM Thread": true,
		// The last one is a truncated name, used by JDK 15 and earlier.
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
	// The kernel scales times, so the sum over threads may slightly exceed the time of the process.
	return min(collector, all.Process), all.Process, vm && (worker || !parallel)
}
