// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package hsperf makes files of counters as a HotSpot JVM writes them.
package hsperf

import "encoding/binary"

// Entry is a text, or a counter.
type Entry struct {
	Name  string
	Text  []byte
	Value uint64
}

// File is a file of counters.
func File(entries ...Entry) []byte {
	le := binary.LittleEndian
	b := make([]byte, 32)
	binary.BigEndian.PutUint32(b, 0xcafec0c0)
	b[4], b[5] = 1, 2
	le.PutUint32(b[24:], 32)
	le.PutUint32(b[28:], uint32(len(entries)))
	for _, e := range entries {
		name := append([]byte(e.Name), make([]byte, 8-len(e.Name)%8)...)
		data, kind := le.AppendUint64(nil, e.Value), byte('J')
		if e.Text != nil {
			data, kind = e.Text, 'B'
		}
		h := make([]byte, 20)
		le.PutUint32(h, uint32(20+len(name)+len(data)))
		le.PutUint32(h[4:], 20)
		le.PutUint32(h[8:], uint32(len(e.Text)))
		h[12] = kind
		le.PutUint32(h[16:], uint32(20+len(name)))
		b = append(append(append(b, h...), name...), data...)
	}
	le.PutUint32(b[8:], uint32(len(b)))
	return b
}
