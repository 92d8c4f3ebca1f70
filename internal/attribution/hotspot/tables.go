// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/attribution/words"
)

// ErrNoTables is returned for missing or invalid tables, as in a JVM that is just starting.
var ErrNoTables = errors.New("the JVM's tables of structures cannot be read")

// Bounds of the tables: JDK 17 has 788 fields and 700 types.
const (
	maxEntries = 4096
	maxName    = 96
)

// jvm reads structures of a JVM by the names of their fields. It keeps its first error, after which all reads return 0,
// so that callers check for an error only in conditions and loops.
type jvm struct {
	s      *attribution.Snapshot
	words  *words.Reader
	fields map[string]field  // "Type::field"
	sizes  map[string]uint64 // of structures, by type
	err    error
}

// field has the offset of a field in its structure, or the address of a static field.
type field struct {
	offset, address uint64
	pointer         bool // a pointer to a structure, not the structure itself
}

// fail records err if it is the first error.
func (j *jvm) fail(err error) {
	if j.err == nil {
		j.err = err
	}
}

// number reads an integer of up to 8 bytes.
func (j *jvm) number(at uint64, bytes int) uint64 {
	var b [8]byte
	if j.err == nil {
		j.err = j.words.Read(b[:bytes], at)
	}
	if j.err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// nameAt reads the name that a pointer points to; named is false at the end of a table.
func (j *jvm) nameAt(at uint64) (name string, named bool) {
	p := j.number(at, 8)
	if p == 0 {
		return "", false
	}
	name, j.err = j.words.Text(p, maxName)
	return name, j.err == nil
}

// exports are the exported symbols of libjvm.so.
type exports interface {
	Symbol(name string) (uint64, error)
}

// variable reads an exported variable of 8 bytes.
func (j *jvm) variable(m exports, name string) uint64 {
	at, err := m.Symbol(name)
	if err != nil {
		j.fail(errors.Join(ErrNoTables, err))
	}
	return j.number(at, 8)
}

// readTables reads both tables, and stores the fields and sizes of wantedTypes.
func (j *jvm) readTables(m exports) {
	structs := j.table(m, "Struct", "TypeName", "FieldName", "TypeString", "IsStatic", "Offset", "Address")
	for i := range uint64(maxEntries) {
		if !j.readField(structs, i) {
			break
		}
	}
	types := j.table(m, "Type", "TypeName", "Size")
	for i := range uint64(maxEntries) {
		if !j.readType(types, i) {
			break
		}
	}
}

// entryTable has the address of a table, the size of its entries, and the offset of each column in an entry.
type entryTable struct {
	start, stride uint64
	columns       map[string]uint64
}

// at returns the address of a column of an entry.
func (t *entryTable) at(entry uint64, column string) uint64 {
	return t.start + entry*t.stride + t.columns[column]
}

// table reads the layout of the table kind, "Struct" or "Type", from variables such as
// gHotSpotVMStructEntryArrayStride.
func (j *jvm) table(m exports, kind string, columns ...string) *entryTable {
	t := &entryTable{columns: map[string]uint64{}}
	t.start = j.variable(m, "gHotSpotVM"+kind+"s")
	t.stride = j.variable(m, "gHotSpotVM"+kind+"EntryArrayStride")
	for _, c := range columns {
		t.columns[c] = j.variable(m, "gHotSpotVM"+kind+"Entry"+c+"Offset")
		if t.columns[c] >= t.stride {
			j.fail(fmt.Errorf("%w: a column past the entry", ErrNoTables))
		}
	}
	if t.start == 0 || t.stride < 16 || t.stride > 256 {
		j.fail(fmt.Errorf("%w: entries of %d bytes", ErrNoTables, t.stride))
	}
	return t
}

// readField stores the field of an entry if its type is wanted; more is false at the end of the table.
func (j *jvm) readField(table *entryTable, entry uint64) (more bool) {
	typeName, more := j.nameAt(table.at(entry, "TypeName"))
	if !more || !slices.Contains(wantedTypes, typeName) {
		return more
	}
	name, _ := j.nameAt(table.at(entry, "FieldName"))
	kind, _ := j.nameAt(table.at(entry, "TypeString"))
	f := field{pointer: strings.HasSuffix(kind, "*")}
	if j.number(table.at(entry, "IsStatic"), 4) != 0 {
		f.address = j.number(table.at(entry, "Address"), 8)
	} else {
		f.offset = j.number(table.at(entry, "Offset"), 8)
	}
	j.fields[typeName+"::"+name] = f
	return j.err == nil
}

func (j *jvm) readType(table *entryTable, entry uint64) (more bool) {
	name, more := j.nameAt(table.at(entry, "TypeName"))
	if more && slices.Contains(wantedTypes, name) {
		j.sizes[name] = j.number(table.at(entry, "Size"), 8)
	}
	return more && j.err == nil
}

// wantedTypes has the structures whose fields are stored, under all their names from JDK 11 to 25.
var wantedTypes = []string{
	"Universe", "CollectedHeap", "MemRegion", "JVMFlag", "CodeCache", "CompressedKlassPointers",
	"G1CollectedHeap", "HeapRegionManager", "G1HeapRegionManager", "G1HeapRegionTable",
	"HeapRegion", "G1HeapRegion", "HeapRegionType", "G1HeapRegionType", "G1ContiguousSpace",
	"GenCollectedHeap", "SerialHeap", "DefNewGeneration", "TenuredGeneration", "Space", "ContiguousSpace",
	"ShenandoahHeap", "ShenandoahHeapRegion",
	"ParallelScavengeHeap", "PSYoungGen", "PSOldGen", "MutableSpace", "ImmutableSpace",
}

// lookup returns the first of these fields that the tables have: names differ between versions of the JDK.
func (j *jvm) lookup(names ...string) field {
	for _, name := range names {
		if f, ok := j.fields[name]; ok {
			return f
		}
	}
	j.fail(fmt.Errorf("%w: no %s", ErrNoTables, names[0]))
	return field{}
}

// static reads a static field.
func (j *jvm) static(names ...string) uint64 { return j.number(j.lookup(names...).address, 8) }

// word reads a field of a structure.
func (j *jvm) word(object uint64, names ...string) uint64 {
	f := j.lookup(names...)
	if f.address != 0 { // static in some versions
		return j.number(f.address, 8)
	}
	return j.number(object+f.offset, 8)
}

// half reads a field of 4 bytes.
func (j *jvm) half(object uint64, names ...string) uint64 {
	return j.number(object+j.lookup(names...).offset, 4)
}

// member returns the address of the structure that a field contains or points to.
func (j *jvm) member(object uint64, names ...string) uint64 {
	f := j.lookup(names...)
	switch {
	case f.pointer:
		return j.word(object, names...)
	case f.address != 0:
		return f.address
	}
	return object + f.offset
}

// Flags has the JVM flags whose effective values become details. Percentages of RAM are in hundredths of a percent.
var Flags = []string{
	amounts.MaxHeapSize, amounts.MinHeapSize, amounts.MaxHeapFreeRatio, amounts.MaxRAMPercentage,
	amounts.MinRAMPercentage, amounts.TrimNativeHeapInterval, "InitialHeapSize", "SoftMaxHeapSize", "MaxMetaspaceSize",
	"CompressedClassSpaceSize", "ReservedCodeCacheSize", "MaxDirectMemorySize", "G1PeriodicGCInterval",
	"ThreadStackSize", "UseG1GC", "UseSerialGC", "UseParallelGC", "UseShenandoahGC",
}

// The lowest bits of JVMFlag::_flags are the origin of a flag's value (jvmFlag.hpp of JDK 11 to 25). ERGONOMIC means
// that the JVM computed the value.
const (
	originMask = 15
	ergonomic  = 5
)

// maxFlags bounds a JVM's flags: JDK 17 has 1,300.
const maxFlags = 4096

// flags reads the values of [Flags] from the JVM's table of all flags.
func (j *jvm) flags() map[string]uint64 {
	start, count, size := j.static("JVMFlag::flags"), j.static("JVMFlag::numFlags"), j.sizes["JVMFlag"]
	if start == 0 || count > maxFlags || size < 16 || size > 256 {
		j.fail(fmt.Errorf("%w: %d flags of %d bytes", ErrNoTables, count, size))
	}
	found := map[string]uint64{}
	for i := uint64(0); i < count && j.err == nil; i++ {
		j.flag(start+i*size, found)
	}
	return found
}

// flag reads the flag at an address into found. Flags that choose a collector have 1 byte, all others 4 or 8.
func (j *jvm) flag(at uint64, found map[string]uint64) {
	name, named := j.nameAt(at + j.lookup("JVMFlag::_name").offset)
	if !named || !slices.Contains(Flags, name) { // the last entry has no name
		return
	}
	bytes := 8
	switch {
	case strings.HasPrefix(name, "Use"):
		bytes = 1
	case name == amounts.TrimNativeHeapInterval: // a uint
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
	if _, exported := j.fields["JVMFlag::_flags"]; exported && name == amounts.MaxHeapSize {
		found[amounts.HeapFollowsMemory] = 0
		if j.half(at, "JVMFlag::_flags")&originMask == ergonomic {
			found[amounts.HeapFollowsMemory] = 1
		}
	}
}
