// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// Which parts of a cursor are stored. What is zero is not.
const (
	hasID = 1 << iota
	hasFinished
	hasLimit
	hasCounter
	hasCounterID
	hasCountedAt
	hasAsked
)

// Which parts of a pod are stored, in the bit below the number of its containers.
const hasGone = 1

var (
	errTruncated = errors.New("the cursors end too early")
	errTwice     = errors.New("a container has two cursors")
)

// appendPods packs the cursors, in the order of their keys. names are the sorted names of all containers; times are
// stored as seconds since the ledger began.
func (l *Ledger) appendPods(data []byte, names []string) []byte {
	keys := make([]podKey, 0, len(l.pods))
	for key := range l.pods {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		p := l.pods[key]
		data = binary.BigEndian.AppendUint64(data, uint64(key))
		header := uint64(len(p.containers)) << 1
		if !p.gone.IsZero() {
			header |= hasGone
		}
		data = binary.AppendUvarint(data, header)
		if !p.gone.IsZero() {
			data = l.appendTime(data, p.gone)
		}
		for _, c := range p.containers {
			name, _ := slices.BinarySearch(names, c.container)
			data = l.appendCursor(binary.AppendUvarint(data, uint64(name)), c) //nolint:gosec // an index
		}
	}
	return data
}

func (l *Ledger) appendCursor(data []byte, c *cursor) []byte {
	flags := flag(c.id != 0, hasID) | flag(!c.finished.IsZero(), hasFinished) | flag(c.limited, hasLimit) |
		flag(c.counter, hasCounter) | flag(c.counterID != 0, hasCounterID) | flag(!c.countedAt.IsZero(), hasCountedAt) |
		flag(c.limited && c.asked != 0, hasAsked)
	data = append(data, flags)
	data = binary.AppendUvarint(data, uint64(max(c.next, 0)))
	if flags&hasID != 0 {
		data = binary.BigEndian.AppendUint32(data, uint32(c.id))
	}
	if flags&hasFinished != 0 {
		data = l.appendTime(data, c.finished)
	}
	if flags&hasLimit != 0 {
		data = binary.AppendVarint(data, int64(c.next)-int64(c.limitOf))
		data = appendSize(data, c.limit)
		if flags&hasAsked != 0 {
			data = appendSize(data, c.asked)
		}
	}
	if flags&hasCounter != 0 {
		data = binary.AppendUvarint(data, uint64(c.count)) //nolint:gosec // a count
		data = binary.AppendVarint(data, int64(c.next)-int64(c.counterOf))
	}
	if flags&hasCounterID != 0 {
		data = binary.BigEndian.AppendUint32(data, uint32(c.counterID))
	}
	if flags&hasCountedAt != 0 {
		data = l.appendTime(data, c.countedAt)
	}
	return data
}

func appendSize(data []byte, b memory.Bytes) []byte {
	shift := byte(bits.TrailingZeros64(uint64(b))) //nolint:gosec // only its bits are counted
	return binary.AppendUvarint(append(data, shift), oddPart(b))
}

func flag(set bool, bit byte) byte {
	if set {
		return bit
	}
	return 0
}

func (l *Ledger) appendTime(data []byte, t time.Time) []byte {
	return binary.AppendVarint(data, t.Unix()-unix(l.since))
}

// readPods reads what appendPods wrote.
func (l *Ledger) readPods(data []byte, names []string) error {
	r := &reader{data: data, since: unix(l.since)}
	for len(r.data) > 0 {
		key, header := podKey(r.uint64()), r.uvarint(math.MaxInt32)
		var gone time.Time
		if header&hasGone != 0 {
			gone = r.time()
		}
		for range header >> 1 {
			name := r.uvarint(math.MaxInt32)
			if r.failed || name >= uint64(len(names)) {
				return errTruncated
			}
			if p := l.pods[key]; p != nil && p.container(names[name]) != nil {
				return errTwice
			}
			l.readCursor(r, l.add(key, names[name]))
		}
		if r.failed {
			return errTruncated
		}
		if p := l.pods[key]; p != nil {
			p.gone = gone
		}
	}
	return nil
}

func (l *Ledger) readCursor(r *reader, c *cursor) {
	flags := r.byte()
	c.next = int32(r.uvarint(math.MaxInt32)) //nolint:gosec // bounded
	if flags&hasID != 0 {
		c.id = instanceID(r.uint32())
	}
	if flags&hasFinished != 0 {
		c.finished = r.time()
	}
	if flags&hasLimit != 0 {
		c.limitOf = r.before(c.next)
		c.limited, c.limit = true, r.size()
		if flags&hasAsked != 0 {
			c.asked = r.size()
		}
	}
	if flags&hasCounter != 0 {
		c.counter, c.count = true, int32(r.uvarint(math.MaxInt32)) //nolint:gosec // bounded
		c.counterOf = r.before(c.next)
	}
	if flags&hasCounterID != 0 {
		c.counterID = instanceID(r.uint32())
	}
	if flags&hasCountedAt != 0 {
		c.countedAt = r.time()
	}
	l.bytes += c.cost() - cursorCost
}

// reader takes numbers from the front of data; failed is true from the first one that is not there or too large.
type reader struct {
	data   []byte
	since  int64
	failed bool
}

func (r *reader) take(n int) []byte {
	if len(r.data) < n {
		r.failed, r.data = true, nil
		return make([]byte, n)
	}
	taken := r.data[:n]
	r.data = r.data[n:]
	return taken
}

func (r *reader) byte() byte     { return r.take(1)[0] }
func (r *reader) uint32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) uint64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }

func (r *reader) uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 || v > most {
		r.failed, r.data = true, nil
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) size() memory.Bytes {
	shift := r.byte() & 63
	return memory.Bytes(r.uvarint(math.MaxInt64>>shift) << shift) //nolint:gosec // bounded
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 {
		r.failed, r.data = true, nil
		return 0
	}
	r.data = r.data[n:]
	return v
}

// before is an instance's number, stored as how far it is before another.
func (r *reader) before(next int32) int32 {
	v := int64(next) - r.varint()
	if v < 0 || v > math.MaxInt32 {
		r.failed, r.data = true, nil
		return 0
	}
	return int32(v)
}

func (r *reader) time() time.Time { return plausible(time.Unix(r.since+r.varint(), 0)) }
