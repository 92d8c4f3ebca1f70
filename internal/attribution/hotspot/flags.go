// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"fmt"
	"math"
	"strings"

	"github.com/memfit/memfit/internal/attribution/amounts"
)

// Flags whose values are reported as details of the usage, under their own names. They are the effective values,
// whether set by the command line, a variable, or the JVM itself from the size of the container. Percentages are in
// hundredths.
var Flags = []string{
	amounts.MaxHeapSize, amounts.MinHeapSize, amounts.MaxHeapFreeRatio, amounts.MaxRAMPercentage,
	amounts.MinRAMPercentage, amounts.TrimNativeHeapInterval, "InitialHeapSize", "SoftMaxHeapSize", "MaxMetaspaceSize",
	"CompressedClassSpaceSize", "ReservedCodeCacheSize", "MaxDirectMemorySize", "G1PeriodicGCInterval",
	"ThreadStackSize", "UseG1GC", "UseSerialGC", "UseParallelGC", "UseShenandoahGC",
}

// An origin is the source of a flag, in the lower bits of JVMFlag::_flags (jvmFlag.hpp of JDK 11 to 25). The JVM gives
// those that it computes itself the origin ERGONOMIC, and those of -Xmx COMMAND_LINE, also in JAVA_TOOL_OPTIONS.
const (
	originMask = 15
	ergonomic  = 5
)

// maxFlags bounds the flags of a JVM: 17 has 1,300.
const maxFlags = 4096

// flags reads the flags of this package from the JVM's own table.
func (j *jvm) flags() map[string]uint64 {
	start, count, size := j.static("JVMFlag::flags"), j.static("JVMFlag::numFlags"), j.sizes["JVMFlag"]
	if start == 0 || count > maxFlags || size < 16 || size > 256 {
		j.fail(fmt.Errorf("%w: %d flags of %d bytes", ErrNoTables, count, size))
	}
	wanted := map[string]bool{}
	for _, name := range Flags {
		wanted[name] = true
	}
	found := map[string]uint64{}
	for i := uint64(0); i < count && j.err == nil; i++ {
		j.flag(start+i*size, wanted, found)
	}
	return found
}

// flag reads one flag. Those that choose a collector are one byte, the others a word or half of one.
func (j *jvm) flag(at uint64, wanted map[string]bool, found map[string]uint64) {
	name, there := j.nameAt(at + j.lookup("JVMFlag::_name").offset)
	if !there || !wanted[name] { // the last entry has no name
		return
	}
	bytes := 8
	switch {
	case name[:3] == "Use":
		bytes = 1
	case narrow[name]:
		bytes = 4
	}
	found[name] = j.number(j.word(at, "JVMFlag::_addr"), bytes)
	if strings.HasSuffix(name, "RAMPercentage") {
		percent := math.Float64frombits(found[name])
		found[name] = 0
		if percent > 0 && percent <= 100 {
			found[name] = uint64(math.Round(100 * percent))
		}
	}
	// The origin of MaxHeapSize, if the JVM exports it.
	if _, exported := j.fields["JVMFlag::_flags"]; exported && name == amounts.MaxHeapSize {
		found[amounts.HeapByMemory] = 0
		if j.half(at, "JVMFlag::_flags")&originMask == ergonomic {
			found[amounts.HeapByMemory] = 1
		}
	}
}

// narrow are flags that are a uint.
var narrow = map[string]bool{amounts.TrimNativeHeapInterval: true}
