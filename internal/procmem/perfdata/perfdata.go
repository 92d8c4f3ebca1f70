// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package perfdata parses the counters that a HotSpot JVM publishes ("hsperfdata"), in version 2.0 of JDK 5 to 25. The
// JVM updates counters of the heap only at collections.
package perfdata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/memfit/memfit/internal/procmem"
)

const (
	// Max bounds the bytes read of the file, which usually has 32 KiB and some 190 entries.
	Max        = 256 << 10
	maxEntries = 2048
)

// Used is the offset of the number of used bytes, 4 bytes in the machine's byte order.
const Used = 8

// ErrFormat is returned for data not written by HotSpot.
var ErrFormat = errors.New("not a hsperfdata file of HotSpot")

// Entry is one counter or text. Its fields are slices of the input: the text of the command may have passwords.
type Entry struct {
	Name, Text []byte
	Value      int64 // 0 for a text
	length     uint64
}

// Mapping returns the mapping of the file /tmp/hsperfdata_USER/PID, or nil.
func Mapping(all []procmem.Mapping) *procmem.Mapping {
	for i := range all {
		if m := &all[i]; m.Inode != 0 && strings.HasPrefix(path.Base(path.Dir(m.Path)), "hsperfdata_") {
			return m
		}
	}
	return nil
}

// Each calls visit for each entry in the contents of a file. Other data returns [ErrFormat].
func Each(b []byte, visit func(Entry)) error {
	b = b[:min(len(b), Max)]
	if len(b) < 32 || binary.BigEndian.Uint32(b) != 0xcafec0c0 || b[5] != 2 {
		return ErrFormat
	}
	var order binary.ByteOrder = binary.BigEndian
	if b[4] == 1 {
		order = binary.LittleEndian
	}
	at := uint64(order.Uint32(b[24:]))
	count := min(order.Uint32(b[28:]), maxEntries)
	for range count {
		e, err := entryAt(b, order, at)
		if err != nil {
			return err
		}
		visit(e)
		at += e.length
	}
	return nil
}

func entryAt(b []byte, order binary.ByteOrder, at uint64) (e Entry, err error) {
	if at+20 > uint64(len(b)) {
		return e, fmt.Errorf("%w: an entry extends past the end", ErrFormat)
	}
	b = b[at:]
	e.length = uint64(order.Uint32(b))
	name, elements, data := uint64(order.Uint32(b[4:])), uint64(order.Uint32(b[8:])), uint64(order.Uint32(b[16:]))
	if e.length < 20 || e.length > uint64(len(b)) || name >= e.length || data > e.length {
		return e, fmt.Errorf("%w: an entry of %d bytes", ErrFormat, e.length)
	}
	entry := b[:e.length]
	e.Name, _, _ = bytes.Cut(entry[name:min(name+128, e.length)], []byte{0})
	switch {
	case b[12] == 'B':
		e.Text, _, _ = bytes.Cut(entry[data:data+min(elements, e.length-data)], []byte{0})
	case b[12] == 'J' && elements == 0 && data+8 <= e.length:
		e.Value = int64(order.Uint64(entry[data:])) //nolint:gosec // signed in the JVM
	}
	return e, nil
}
