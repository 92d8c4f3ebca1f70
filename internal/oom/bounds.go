// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// Bounds of a stored ledger, in bytes. A MemoryCheckpoint stores it as base64, a third more; with the rest of the
// checkpoint it stays below the 1 MiB of controllers.maxCheckpoint, and that below the 1.5 MiB that etcd takes in one
// request.
const (
	// cursorBytes holds 10,000 pods with one restarted container each and a reading of the kernel's counter in most of
	// them, or 1,000 pods with 20 restarted containers each.
	cursorBytes = 576 << 10
	// quietBytes bounds the part of containers that never restarted, and are followed because they are older than the
	// ledger.
	quietBytes = cursorBytes / 4
	// detailBytes bounds the kills kept in detail: KillsKept of some 290 bytes each for eight containers, of some 600 for
	// four with an agent's account of each.
	detailBytes = 48 << 10
	// namesKept bounds the container names of one workload, over all its versions.
	namesKept = 256
)

// Maximum stored sizes of the parts of a cursor (see pack.go). They are charged in full at creation, so that later
// changes cannot exceed the bound.
const (
	podCost     = 8 + 6 + 2             // key, gone, number of containers
	cursorCost  = 2 + 5 + 4 + 6 + 1 + 1 // name, next, id, finished, limited, counter
	counterCost = 5 + 4 + 5 + 6         // count, counterID, counterOf, countedAt
)

func (c *cursor) cost() int {
	n := cursorCost
	if c.limited {
		n += 5 + sizeCost(c.limit) + sizeCost(c.asked) // limitOf, limit, asked
	}
	if c.counter {
		n += counterCost
	}
	return n
}

// sizeCost returns the maximum stored size of a size: its odd part and its shift.
func sizeCost(b memory.Bytes) int {
	if b == 0 {
		return 1
	}
	return 1 + (bits.Len64(oddPart(b))+7)/7
}

// charged returns the maximum stored size of all cursors.
func (l *Ledger) charged() int {
	n := 0
	for _, p := range l.pods {
		n += podCost
		for i := range p.containers {
			n += p.containers[i].cost()
		}
	}
	return n
}

// oddPart returns a size without its trailing zero bits, of which most limits have twenty.
func oddPart(b memory.Bytes) uint64 {
	if b <= 0 {
		return 0
	}
	return uint64(b) >> bits.TrailingZeros64(uint64(b))
}

// fits reports whether more bytes fit. It drops deleted pods for them, the oldest first, but never existing ones.
func (l *Ledger) fits(more int) bool {
	if l.bytes+more <= cursorBytes {
		return true
	}
	if l.allExist {
		return false
	}
	for _, key := range l.goneLongest() {
		if l.bytes+more <= cursorBytes*15/16 { // a sixteenth at a time, so that the next pod need not sort again
			return true
		}
		l.drop(key)
	}
	l.allExist = true
	return l.bytes+more <= cursorBytes
}

// goneLongest returns the deleted pods, the oldest first.
func (l *Ledger) goneLongest() []podKey {
	var keys []podKey
	for key, p := range l.pods {
		if !p.gone.IsZero() {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b podKey) int {
		return cmp.Or(l.pods[a].gone.Compare(l.pods[b].gone), cmp.Compare(a, b))
	})
	return keys
}

// skip records that a pod is not followed, because the ledger is full.
func (l *Ledger) skip(ref memory.ContainerRef) { l.notFollowed[keyOf(ref.UID)] = struct{}{} }

// NotFollowed returns the number of existing pods with killed or restarted containers that are not followed, because
// the ledger is full. Their kills are not counted until other pods are deleted.
func (l *Ledger) NotFollowed() int { return len(l.notFollowed) }

// know reports whether a container name is known or can be added. If there are too many, it drops one without a cursor
// that was last seen before this one's pod was created.
func (l *Ledger) know(name string, born time.Time) bool {
	if _, known := l.names[name]; known {
		return true
	}
	if len(l.names) >= namesKept && !l.forgetName(born) {
		return false
	}
	l.names[name] = &named{}
	return true
}

func (l *Ledger) forgetName(before time.Time) bool {
	oldest := ""
	for name, n := range l.names {
		at := n.lastSeen()
		if n.cursors > 0 || !at.Before(before) {
			continue
		}
		if oldest == "" || cmp.Or(at.Compare(l.of(oldest).lastSeen()), cmp.Compare(name, oldest)) < 0 {
			oldest = name
		}
	}
	if oldest == "" {
		return false
	}
	delete(l.names, oldest)
	return true
}

// lastSeen returns when the youngest pod with the container was created, or its last kill or stall if later.
func (n *named) lastSeen() time.Time {
	at := n.Born
	if last := len(n.Kills) - 1; last >= 0 && n.Kills[last].Time.After(at) {
		at = n.Kills[last].Time
	}
	if last := len(n.Stalls) - 1; last >= 0 && n.Stalls[last].Since.After(at) {
		at = n.Stalls[last].Since
	}
	return at
}

// trimDetails drops the details of the oldest kills of the container with the most, while details exceed their bound.
// The kills remain counted.
func (l *Ledger) trimDetails() {
	total := 0
	for _, n := range l.names {
		for i := range n.Kills {
			total += detailCost(&n.Kills[i])
		}
	}
	for total > detailBytes {
		most := ""
		for name, n := range l.names {
			if has := len(l.of(most).Kills); len(n.Kills) > has || len(n.Kills) == has && name < most {
				most = name
			}
		}
		n := l.names[most]
		total -= detailCost(&n.Kills[0])
		n.count(n.Kills[:1], 1)
		n.Kills = n.Kills[1:]
	}
}

// detailCost estimates the JSON size of a kill.
func detailCost(k *memory.OOMKill) int {
	ref := &k.Container
	return 200 + len(ref.Namespace) + len(ref.Pod) + len(ref.UID) + len(ref.Container) + len(k.Why) + accountCost(k)
}

// accountCost estimates the JSON size of an agent's account.
func accountCost(k *memory.OOMKill) int {
	if k.AccountAt.IsZero() {
		return 0
	}
	return 52 + len(k.Account)
}

// storable returns a time in whole seconds, zero if unknown.
func storable(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return plausible(t).Truncate(time.Second)
}

// plausible limits a time to the years 1970 to 9999, the API server's maximum.
func plausible(t time.Time) time.Time {
	t = t.UTC()
	if t.Unix() < 0 || t.Year() > 9999 {
		return time.Unix(0, 0).UTC()
	}
	return t
}
