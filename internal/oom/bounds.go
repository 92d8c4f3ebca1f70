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

// Bounds of a stored ledger, in bytes. A MemoryCheckpoint stores it as base64, which is a third longer. The whole
// checkpoint is below 1 MiB (controllers.maxCheckpoint), and etcd accepts requests of up to 1.5 MiB.
const (
	// cursorBytes bounds all cursors. It suffices for 10,000 pods with one restarted container each and a reading of the
	// kernel's counter in most of them, or for 1,000 pods with 20 restarted containers each.
	cursorBytes = 576 << 10
	// quietBytes bounds the cursors of containers that never restarted. They have one if they are older than the ledger.
	quietBytes = cursorBytes / 4
	// detailBytes bounds the kills kept in detail: KillsKept for eight containers, with some 290 bytes each, or for four
	// containers with an agent's account of each kill, with some 600 bytes each.
	detailBytes = 48 << 10
	// namesKept bounds the container names of one workload, over all its versions.
	namesKept = 256
)

// Maximum stored sizes of the parts of a cursor (see pack.go), in bytes. A new cursor is charged with the maximum, so
// that later changes cannot exceed the bound.
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

// sizeCost returns the maximum stored size of an amount: its odd part and its shift.
func sizeCost(b memory.Bytes) int {
	if b == 0 {
		return 1
	}
	return 1 + (bits.Len64(oddPart(b))+7)/7
}

// storedSize returns the maximum stored size of all cursors.
func (l *Ledger) storedSize() int {
	n := 0
	for _, p := range l.pods {
		n += podCost
		for i := range p.containers {
			n += p.containers[i].cost()
		}
	}
	return n
}

// oddPart returns an amount without its trailing zero bits; most limits have twenty of these.
func oddPart(b memory.Bytes) uint64 {
	if b <= 0 {
		return 0
	}
	return uint64(b) >> bits.TrailingZeros64(uint64(b))
}

// ensureSpace reports whether more bytes fit, after dropping deleted pods if needed, the oldest first.
func (l *Ledger) ensureSpace(more int) bool {
	if l.bytes+more <= cursorBytes {
		return true
	}
	if l.allExist {
		return false
	}
	for _, key := range l.deletedPods() {
		if l.bytes+more <= cursorBytes*15/16 { // drop a sixteenth at a time, because sorting is expensive
			return true
		}
		l.drop(key)
	}
	l.allExist = true
	return l.bytes+more <= cursorBytes
}

// deletedPods returns the deleted pods, the longest deleted first.
func (l *Ledger) deletedPods() []podKey {
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

// markNotFollowed records that a pod is not followed, because the ledger is full.
func (l *Ledger) markNotFollowed(ref memory.ContainerRef) { l.notFollowed[keyOf(ref.UID)] = struct{}{} }

// NotFollowed returns the number of existing pods with killed or restarted containers that are not followed, because
// the ledger is full. Their kills are not counted until other pods are deleted.
func (l *Ledger) NotFollowed() int { return len(l.notFollowed) }

// ensureName adds a container name; false if there are too many. It then drops a name without a cursor if that name was
// last seen before the new one's pod was created.
func (l *Ledger) ensureName(name string, born time.Time) bool {
	if _, known := l.names[name]; known {
		return true
	}
	if len(l.names) >= namesKept && !l.forgetName(born) {
		return false
	}
	l.names[name] = &nameData{}
	return true
}

func (l *Ledger) forgetName(before time.Time) bool {
	oldest := ""
	for name, n := range l.names {
		at := n.lastSeen()
		if n.cursors > 0 || !at.Before(before) {
			continue
		}
		if oldest == "" || cmp.Or(at.Compare(l.byName(oldest).lastSeen()), cmp.Compare(name, oldest)) < 0 {
			oldest = name
		}
	}
	if oldest == "" {
		return false
	}
	delete(l.names, oldest)
	return true
}

// lastSeen returns the latest time of the data: the creation of the youngest pod, the last kill, or the last stall.
func (n *nameData) lastSeen() time.Time {
	at := n.Born
	if last := len(n.Kills) - 1; last >= 0 && n.Kills[last].Time.After(at) {
		at = n.Kills[last].Time
	}
	if last := len(n.Stalls) - 1; last >= 0 && n.Stalls[last].Since.After(at) {
		at = n.Stalls[last].Since
	}
	return at
}

// trimDetails drops details while they exceed their bound, each time of the oldest kill of the container name with the
// most kills. The kills remain counted.
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
			if has := len(l.byName(most).Kills); len(n.Kills) > has || len(n.Kills) == has && name < most {
				most = name
			}
		}
		n := l.names[most]
		total -= detailCost(&n.Kills[0])
		n.addDropped(n.Kills[:1], 1)
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

// storable returns a time as it is stored: plausible, in whole seconds; zero if unknown.
func storable(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return plausible(t).Truncate(time.Second)
}

// plausible returns a time in UTC; 1970 for one outside of 1970 to 9999, which the API server could not store.
func plausible(t time.Time) time.Time {
	t = t.UTC()
	if t.Unix() < 0 || t.Year() > 9999 {
		return time.Unix(0, 0).UTC()
	}
	return t
}
