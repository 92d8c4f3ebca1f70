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

// Bounds of a file of counters: the JVM's own is 32 KiB and holds some 190 entries.
const (
	maxPerfData    = 256 << 10
	maxPerfEntries = 2048
)

var errPerfData = errors.New("no hsperfdata of HotSpot")

// parsePerfData reads the file in which a HotSpot JVM counts ("hsperfdata"), of version 2.0, which JDK 5 to 25 write.
// It returns the arguments and the contents of a flags file that the JVM was started with, as far as they concern
// memory, and nothing of the application's. Amounts are not read: they are refreshed at collections only.
func parsePerfData(b []byte) (string, error) {
	b = b[:min(len(b), maxPerfData)]
	if len(b) < 32 || binary.BigEndian.Uint32(b) != 0xcafec0c0 || b[5] != 2 {
		return "", errPerfData
	}
	var order binary.ByteOrder = binary.BigEndian
	if b[4] == 1 {
		order = binary.LittleEndian
	}
	at := uint64(order.Uint32(b[24:]))
	count := min(order.Uint32(b[28:]), maxPerfEntries)
	var args, flags string
	for range count {
		e, err := perfEntryAt(b, order, at)
		if err != nil {
			return "", err
		}
		switch string(e.name) {
		case "java.rt.vmArgs":
			args = ofMemory(e.text)
		case "java.rt.vmFlags":
			flags = ofMemory(e.text)
		}
		at += e.length
	}
	return strings.TrimSpace(args + " " + flags), nil
}

// perfEntry is one counter or text. Its fields are slices of the file's bytes, without a copy: one of the texts is the
// command of the program, which may hold passwords.
type perfEntry struct {
	length     uint64
	name, text []byte
}

func perfEntryAt(b []byte, order binary.ByteOrder, at uint64) (e perfEntry, err error) {
	if at+20 > uint64(len(b)) {
		return e, fmt.Errorf("%w: an entry lies behind the end", errPerfData)
	}
	b = b[at:]
	e.length = uint64(order.Uint32(b))
	name, elements, data := uint64(order.Uint32(b[4:])), uint64(order.Uint32(b[8:])), uint64(order.Uint32(b[16:]))
	if e.length < 20 || e.length > uint64(len(b)) || name >= e.length || data > e.length {
		return e, fmt.Errorf("%w: an entry of %d bytes", errPerfData, e.length)
	}
	entry := b[:e.length]
	e.name, _, _ = bytes.Cut(entry[name:min(name+128, e.length)], []byte{0})
	if b[12] == 'B' {
		e.text, _, _ = bytes.Cut(entry[data:data+min(elements, e.length-data)], []byte{0})
	}
	return e, nil
}

// ofMemory returns the words of a text that concern memory: -D may set a password.
func ofMemory(text []byte) string {
	var kept []string
	for word := range bytes.FieldsSeq(text) {
		if len(word) <= maxFlagText && mayBeSetting(word) && len(kept) < maxWords {
			kept = append(kept, string(word))
		}
	}
	return strings.Join(kept, " ")
}
