// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/codec"
	"github.com/memfit/memfit/internal/memory"
)

// packPods packs the cursors, in the order of their keys. names are the sorted names of all containers.
func (l *Ledger) packPods(w *codec.Coder, names []string) {
	for _, key := range slices.Sorted(maps.Keys(l.pods)) {
		p, id := l.pods[key], uint64(key)
		containers := len(p.containers)
		w.Bits(&id, 8)
		l.codeTime(w, &p.gone)
		codeLen(w, &containers)
		for i := range p.containers {
			c := &p.containers[i]
			name, _ := slices.BinarySearch(names, c.container)
			codeLen(w, &name)
			l.codeCursor(w, c)
		}
	}
}

// unpackPods adds the pods that packPods packed.
func (l *Ledger) unpackPods(r *codec.Coder, names []string) error {
	for len(r.Data()) > 0 {
		var id uint64
		var gone time.Time
		var containers int
		r.Bits(&id, 8)
		l.codeTime(r, &gone)
		codeLen(r, &containers)
		key := podKey(id)
		for range containers {
			var name int
			if codeLen(r, &name); name >= len(names) {
				r.Fail("a cursor of an unknown container")
			} else if p := l.pods[key]; p != nil && p.container(names[name]) != nil {
				r.Fail("a container has two cursors")
			}
			if r.Err() != nil {
				return r.Err()
			}
			c := l.add(key, names[name])
			l.codeCursor(r, c)
			l.bytes += c.cost() - cursorCost
		}
		if p := l.pods[key]; p != nil {
			p.gone = gone
		}
	}
	return r.Err()
}

func (l *Ledger) codeCursor(w *codec.Coder, c *cursor) {
	codec.Num(w, &c.next)
	codeID(w, &c.id)
	l.codeTime(w, &c.finished)
	codec.Flag(w, &c.limited)
	if c.limited {
		codeNear(w, &c.limitOf, c.next)
		codeSize(w, &c.limit)
		codeSize(w, &c.asked)
	}
	codec.Flag(w, &c.counter)
	if c.counter {
		codec.Num(w, &c.count)
		codeID(w, &c.counterID)
		codeNear(w, &c.counterOf, c.next)
		l.codeTime(w, &c.countedAt)
	}
	if min(c.next, c.limitOf, c.count, c.counterOf) < 0 {
		w.Fail("a number is below zero")
	}
}

func codeID(w *codec.Coder, id *instanceID) {
	n := uint64(*id)
	w.Bits(&n, 4)
	*id = instanceID(n) //nolint:gosec // of four bytes
}

// codeNear codes an instance's index as the difference to next.
func codeNear(w *codec.Coder, v *int32, next int32) { codec.Delta(w, v, &next) }

// codeLen codes a length or an index.
func codeLen(w *codec.Coder, v *int) {
	n := int32(*v) //nolint:gosec // at most one per container
	if codec.Num(w, &n); n < 0 {
		w.Fail("a number is below zero")
		n = 0
	}
	*v = int(n)
}

// codeSize codes an amount as its odd part and a shift; most limits have twenty trailing zero bits.
func codeSize(w *codec.Coder, b *memory.Bytes) {
	odd := int64(oddPart(*b)) //nolint:gosec // of 63 bits
	if w.Int(&odd); odd == 0 {
		*b = 0
		return
	}
	shift := uint8(bits.TrailingZeros64(uint64(*b))) //nolint:gosec // below 64
	w.Byte(&shift)
	if *b = memory.Bytes(odd) << (shift & 63); *b < 0 || int64(*b>>(shift&63)) != odd {
		w.Fail("a size is out of range")
		*b = 0
	}
}

// codeTime codes a time in seconds since the ledger began; 0 is the zero time.
func (l *Ledger) codeTime(w *codec.Coder, t *time.Time) {
	var seconds int64
	if !t.IsZero() {
		if seconds = t.Unix() - unix(l.since); seconds >= 0 {
			seconds++
		}
	}
	w.Int(&seconds)
	switch {
	case !w.Reading():
	case seconds == 0:
		*t = time.Time{}
	case seconds > 0:
		*t = plausible(time.Unix(unix(l.since)+seconds-1, 0))
	default:
		*t = plausible(time.Unix(unix(l.since)+seconds, 0))
	}
}
