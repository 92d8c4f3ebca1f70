// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package hsperf creates performance data files like those of HotSpot JVMs.
package hsperf

import "encoding/binary"

// Entry is a counter; one with Text is a string, others have a Value.
type Entry struct {
	Name  string
	Text  []byte
	Value uint64
}

// File returns the content of a file with the entries.
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
