// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package hotspot

import "fmt"

// Flags whose values are reported as details of the usage, under their own names. They are the effective values,
// whether set by the command line, a variable, or the JVM itself from the size of the container.
var Flags = []string{
	"MaxHeapSize", "InitialHeapSize", "SoftMaxHeapSize", "MaxMetaspaceSize", "CompressedClassSpaceSize",
	"ReservedCodeCacheSize", "MaxDirectMemorySize", "TrimNativeHeapInterval", "G1PeriodicGCInterval", "ThreadStackSize",
	"MaxHeapFreeRatio", "MinHeapSize", "UseG1GC", "UseSerialGC", "UseParallelGC", "UseShenandoahGC",
}

// HeapByMemory is the name of a detail: 1 where the JVM computed MaxHeapSize as a share of the memory that it sees, 0
// where a flag sets it as a number; absent: not read.
const HeapByMemory = "MaxHeapSizeByMemory"

// An origin is what set a flag, in the lower bits of JVMFlag::_flags (jvmFlag.hpp of JDK 11 to 25). The JVM gives
// those that it computes itself the origin ERGONOMIC, and those of -Xmx COMMAND_LINE, also in JAVA_TOOL_OPTIONS.
const (
	originMask = 15
	ergonomic  = 5
)

// maxFlags is how many flags a JVM may have: 17 has 1,300.
const maxFlags = 4096

// flags reads the flags of this package from the JVM's own table.
func (s *structs) flags() (map[string]uint64, error) {
	start, err := s.static("JVMFlag::flags")
	if err != nil {
		return nil, err
	}
	count, err := s.static("JVMFlag::numFlags")
	if err != nil {
		return nil, err
	}
	size := s.sizes["JVMFlag"]
	if start == 0 || count > maxFlags || size < 16 || size > 256 {
		return nil, fmt.Errorf("%w: %d flags of %d bytes", ErrNoTables, count, size)
	}
	wanted := map[string]bool{}
	for _, name := range Flags {
		wanted[name] = true
	}
	for _, c := range collectors {
		wanted[c.flag] = true
	}
	found := map[string]uint64{}
	for i := range count {
		if err := s.flag(start+i*size, wanted, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// flag reads one flag. Those that choose a collector are one byte, the others a word or half of one.
func (s *structs) flag(at uint64, wanted map[string]bool, found map[string]uint64) error {
	pointer, err := s.word(at, "JVMFlag::_name")
	if err != nil || pointer == 0 {
		return err // the last entry has no name
	}
	name, err := s.Text(pointer, maxName)
	if err != nil || !wanted[name] {
		return err
	}
	value, err := s.word(at, "JVMFlag::_addr")
	if err != nil {
		return err
	}
	if name[:3] == "Use" {
		var b [1]byte
		err = s.Read(b[:], value)
		found[name] = uint64(b[0])
		return err
	}
	if narrow[name] {
		number, err := s.Uint32(value)
		found[name] = uint64(number)
		return err
	}
	if name == "MaxHeapSize" {
		s.heapOrigin(at, found)
	}
	number, err := s.Uint64(value)
	found[name] = number
	return err
}

// heapOrigin reads who set MaxHeapSize. A JVM that does not export that is read without.
func (s *structs) heapOrigin(at uint64, found map[string]uint64) {
	f, err := s.lookup("JVMFlag::_flags")
	if err != nil {
		return
	}
	flags, err := s.Uint32(at + f.offset)
	if err != nil {
		return
	}
	found[HeapByMemory] = 0
	if flags&originMask == ergonomic {
		found[HeapByMemory] = 1
	}
}

// narrow are flags that are a uint.
var narrow = map[string]bool{"TrimNativeHeapInterval": true}
