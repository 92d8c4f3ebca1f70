// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// PerfData is what memfit reads of the file in which a HotSpot JVM counts ("hsperfdata"). Its amounts are refreshed at
// collections only, so that they do not measure the heap; what the JVM was started with does not change.
type PerfData struct {
	// VMArgs are the arguments of the JVM itself that speak of memory, without those of the application.
	VMArgs string
	// VMFlags are those of what it read from a flags file.
	VMFlags string
	// Collector is the collector's policy, as "GarbageFirst".
	Collector string
	// Counters are the amounts of [perfCounters] that are there.
	Counters map[string]int64
}

// perfCounters are the amounts that are kept.
var perfCounters = []string{
	"sun.gc.metaspace.capacity", "sun.gc.compressedclassspace.capacity", "sun.gc.collector.1.invocations",
	"java.threads.live",
}

// Bounds of a file of counters: the JVM's own is 32 KiB and holds some 190 entries.
const (
	maxPerfData    = 256 << 10
	maxPerfEntries = 2048
)

// ErrPerfData is returned for what is not a file of counters.
var ErrPerfData = errors.New("no hsperfdata of HotSpot")

// ParsePerfData reads a file of counters, of version 2.0, which JDK 5 to 25 write.
func ParsePerfData(b []byte) (PerfData, error) {
	var p PerfData
	b = b[:min(len(b), maxPerfData)]
	if len(b) < 32 || binary.BigEndian.Uint32(b) != 0xcafec0c0 || b[5] != 2 {
		return p, ErrPerfData
	}
	var order binary.ByteOrder = binary.BigEndian
	if b[4] == 1 {
		order = binary.LittleEndian
	}
	at := uint64(order.Uint32(b[24:]))
	count := min(order.Uint32(b[28:]), maxPerfEntries)
	for range count {
		e, err := perfEntryAt(b, order, at)
		if err != nil {
			return p, err
		}
		p.keep(e, order)
		at += e.length
	}
	return p, nil
}

// perfEntry is one counter or text. It lies where the file was read to, and is not copied: one of the texts is the
// command of the program, which may hold passwords.
type perfEntry struct {
	length     uint64
	name, data []byte
	text       bool
}

func perfEntryAt(b []byte, order binary.ByteOrder, at uint64) (e perfEntry, err error) {
	if at+20 > uint64(len(b)) {
		return e, fmt.Errorf("%w: an entry lies behind the end", ErrPerfData)
	}
	b = b[at:]
	e.length = uint64(order.Uint32(b))
	name, elements, data := uint64(order.Uint32(b[4:])), uint64(order.Uint32(b[8:])), uint64(order.Uint32(b[16:]))
	if e.length < 20 || e.length > uint64(len(b)) || name >= e.length || data > e.length {
		return e, fmt.Errorf("%w: an entry of %d bytes", ErrPerfData, e.length)
	}
	entry := b[:e.length]
	e.name, _, _ = bytes.Cut(entry[name:min(name+128, e.length)], []byte{0})
	e.text, e.data = elements > 0 && b[12] == 'B', entry[data:]
	if e.text {
		e.data = e.data[:min(elements, uint64(len(e.data)))]
	}
	return e, nil
}

func (p *PerfData) keep(e perfEntry, order binary.ByteOrder) {
	text, _, _ := bytes.Cut(e.data, []byte{0})
	name := e.name
	switch {
	case e.text && string(name) == "java.rt.vmArgs":
		p.VMArgs = ofMemory(text)
	case e.text && string(name) == "java.rt.vmFlags":
		p.VMFlags = ofMemory(text)
	case e.text && string(name) == "sun.gc.policy.name":
		p.Collector = string(text)
	case !e.text && len(e.data) >= 8:
		p.count(name, int64(order.Uint64(e.data))) //nolint:gosec // it is signed there
	}
}

// ofMemory are the words of a text that speak of memory: -D may set a password.
func ofMemory(text []byte) string {
	var kept []string
	for word := range bytes.FieldsSeq(text) {
		if len(word) <= maxFlagText && mayBeSetting(word) && len(kept) < maxWords {
			kept = append(kept, string(word))
		}
	}
	return strings.Join(kept, " ")
}

func (p *PerfData) count(name []byte, value int64) {
	for _, known := range perfCounters {
		if string(name) == known {
			if p.Counters == nil {
				p.Counters = map[string]int64{}
			}
			p.Counters[known] = value
		}
	}
}
