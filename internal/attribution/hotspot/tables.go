// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"errors"
	"fmt"
	"strings"

	"github.com/memfit/memfit/internal/attribution/words"
)

// ErrNoTables is returned where the tables are not there or make no sense, as in a JVM that is just starting.
var ErrNoTables = errors.New("the JVM's tables of structures cannot be read")

// Bounds of the tables: JDK 17 has 788 fields and 700 types.
const (
	maxEntries = 4096
	maxName    = 96
)

// field is where one field is: its offset in a structure, or its address where it is static.
type field struct {
	offset, address uint64
	pointer         bool // it points at another structure, and does not hold it
}

// tables are the fields and sizes that this package asks for.
type tables struct {
	fields map[string]field  // "Type::field"
	sizes  map[string]uint64 // of types
}

// entryTable is where a table is and where in an entry its columns are.
type entryTable struct {
	start, stride uint64
	columns       map[string]uint64
}

// exports are the exported symbols of libjvm.so.
type exports interface {
	Symbol(name string) (uint64, error)
}

// readTables reads the tables, and keeps of them what is wanted.
func readTables(m exports, r *words.Reader) (tables, error) {
	t := tables{fields: map[string]field{}, sizes: map[string]uint64{}}
	structs, err := findTable(m, r, "Struct", "TypeName", "FieldName", "TypeString", "IsStatic", "Offset", "Address")
	if err != nil {
		return t, err
	}
	for i := range uint64(maxEntries) {
		more, err := t.readField(r, structs, structs.start+i*structs.stride)
		if err != nil {
			return t, err
		}
		if !more {
			break
		}
	}
	types, err := findTable(m, r, "Type", "TypeName", "Size")
	if err != nil {
		return t, err
	}
	for i := range uint64(maxEntries) {
		more, err := t.readType(r, types, types.start+i*types.stride)
		if err != nil || !more {
			return t, err
		}
	}
	return t, nil
}

// findTable reads where the table of "Struct" or "Type" is: gHotSpotVMStructs, gHotSpotVMStructEntryOffsetOffset ...
func findTable(m exports, r *words.Reader, kind string, columns ...string) (entryTable, error) {
	t := entryTable{columns: map[string]uint64{}}
	var err error
	if t.start, err = variable(m, r, "gHotSpotVM"+kind+"s"); err != nil {
		return t, err
	}
	if t.stride, err = variable(m, r, "gHotSpotVM"+kind+"EntryArrayStride"); err != nil {
		return t, err
	}
	for _, c := range columns {
		if t.columns[c], err = variable(m, r, "gHotSpotVM"+kind+"Entry"+c+"Offset"); err != nil {
			return t, err
		}
		if t.columns[c] >= t.stride {
			return t, fmt.Errorf("%w: a column behind the entry", ErrNoTables)
		}
	}
	if t.start == 0 || t.stride < 16 || t.stride > 256 {
		return t, fmt.Errorf("%w: entries of %d bytes", ErrNoTables, t.stride)
	}
	return t, nil
}

func variable(m exports, r *words.Reader, name string) (uint64, error) {
	at, err := m.Symbol(name)
	if err != nil {
		return 0, errors.Join(ErrNoTables, err)
	}
	value, err := r.Uint64(at)
	if err != nil {
		return 0, errors.Join(ErrNoTables, err)
	}
	return value, nil
}

// readField keeps a field of a type that is wanted; more is false at the end of the table.
func (t *tables) readField(r *words.Reader, table entryTable, at uint64) (more bool, err error) {
	typeName, more, err := nameAt(r, at+table.columns["TypeName"])
	if err != nil || !more || !wantedTypes[typeName] {
		return more, err
	}
	name, _, err := nameAt(r, at+table.columns["FieldName"])
	if err != nil {
		return false, err
	}
	kind, _, err := nameAt(r, at+table.columns["TypeString"])
	if err != nil {
		return false, err
	}
	static, err := r.Uint32(at + table.columns["IsStatic"])
	if err != nil {
		return false, err
	}
	f := field{pointer: strings.HasSuffix(kind, "*")}
	if static != 0 {
		f.address, err = r.Uint64(at + table.columns["Address"])
	} else {
		f.offset, err = r.Uint64(at + table.columns["Offset"])
	}
	t.fields[typeName+"::"+name] = f
	return true, err
}

func (t *tables) readType(r *words.Reader, table entryTable, at uint64) (more bool, err error) {
	name, more, err := nameAt(r, at+table.columns["TypeName"])
	if err != nil || !more || !wantedTypes[name] {
		return more, err
	}
	t.sizes[name], err = r.Uint64(at + table.columns["Size"])
	return true, err
}

// nameAt follows a pointer to a name; the end of a table has none.
func nameAt(r *words.Reader, at uint64) (name string, there bool, err error) {
	p, err := r.Uint64(at)
	if err != nil || p == 0 {
		return "", false, err
	}
	name, err = r.Text(p, maxName)
	return name, true, err
}

// wantedTypes are the structures whose fields are kept; names changed from JDK 11 to 25.
var wantedTypes = func() map[string]bool {
	wanted := map[string]bool{}
	for _, name := range []string{
		"Universe", "CollectedHeap", "MemRegion", "JVMFlag", "CodeCache", "CompressedKlassPointers",
		"G1CollectedHeap", "HeapRegionManager", "G1HeapRegionManager", "G1HeapRegionTable",
		"HeapRegion", "G1HeapRegion", "HeapRegionType", "G1HeapRegionType", "G1ContiguousSpace",
		"GenCollectedHeap", "SerialHeap", "DefNewGeneration", "TenuredGeneration", "Space", "CompactibleSpace",
		"ContiguousSpace",
		"ShenandoahHeap", "ShenandoahHeapRegion",
		"ParallelScavengeHeap", "PSYoungGen", "PSOldGen", "MutableSpace", "ImmutableSpace",
	} {
		wanted[name] = true
	}
	return wanted
}()

// structs reads fields of structures by their names.
type structs struct {
	tables
	*words.Reader
}

// lookup returns the first of these fields that the tables have.
func (s *structs) lookup(names ...string) (field, error) {
	for _, name := range names {
		if f, ok := s.fields[name]; ok {
			return f, nil
		}
	}
	return field{}, fmt.Errorf("%w: no %s", ErrNoTables, names[0])
}

// static reads a static field.
func (s *structs) static(names ...string) (uint64, error) {
	f, err := s.lookup(names...)
	if err != nil {
		return 0, err
	}
	return s.Uint64(f.address)
}

// word reads a field of a structure.
func (s *structs) word(object uint64, names ...string) (uint64, error) {
	f, err := s.lookup(names...)
	if err != nil {
		return 0, err
	}
	if f.address != 0 { // static in some versions
		return s.Uint64(f.address)
	}
	return s.Uint64(object + f.offset)
}

// member is the address of a structure that another holds, or points at.
func (s *structs) member(object uint64, names ...string) (uint64, error) {
	f, err := s.lookup(names...)
	switch {
	case err != nil:
		return 0, err
	case f.pointer:
		return s.word(object, names...)
	case f.address != 0:
		return f.address, nil
	}
	return object + f.offset, nil
}
