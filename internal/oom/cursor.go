// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// podKey is a hash of a pod's UID. The probability of a collision among 10,000 pods is below 1 in 10^11.
type podKey uint64

func keyOf(uid types.UID) podKey {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	return podKey(h.Sum64())
}

// instanceID is a hash of a container ID, compared only with other instances of the same container. 0: none.
type instanceID uint32

// idTail is the number of hashed characters at the end of a container ID. It excludes a prefix such as "containerd://".
const idTail = 12

func instanceOf(containerID string) instanceID {
	if containerID == "" {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(containerID[max(0, len(containerID)-idTail):]))
	return instanceID(max(h.Sum32(), 1))
}

func (l *Ledger) cursor(ref memory.ContainerRef) *cursor {
	if len(l.pods) == 0 {
		return nil
	}
	if p := l.pods[keyOf(ref.UID)]; p != nil {
		return p.container(ref.Container)
	}
	return nil
}

func (p *pod) container(name string) *cursor {
	for i := range p.containers {
		if c := &p.containers[i]; c.container == name {
			return c
		}
	}
	return nil
}

// newCursor adds a cursor for a container; nil if the ledger is full.
func (l *Ledger) newCursor(ref memory.ContainerRef) *cursor {
	key := keyOf(ref.UID)
	cost := cursorCost
	if l.pods[key] == nil {
		cost += podCost
	}
	if !l.ensureSpace(cost) {
		return nil
	}
	delete(l.notFollowed, key)
	return l.add(key, ref.Container)
}

// add adds a cursor for a known container name, even if the ledger is full.
func (l *Ledger) add(key podKey, container string) *cursor {
	p := l.pods[key]
	if p == nil {
		p = &pod{}
		l.pods[key] = p
		l.bytes += podCost
	}
	at, _ := slices.BinarySearchFunc(
		p.containers, container, func(c cursor, name string) int { return strings.Compare(c.container, name) },
	)
	p.containers = slices.Insert(p.containers, at, cursor{container: container})
	l.names[container].cursors++
	l.bytes += cursorCost
	return &p.containers[at]
}

// drop removes a pod with its cursors.
func (l *Ledger) drop(key podKey) {
	p := l.pods[key]
	l.bytes -= podCost
	for i := range p.containers {
		c := &p.containers[i]
		l.bytes -= c.cost()
		l.names[c.container].cursors--
	}
	delete(l.pods, key)
}

// processed reports whether an end was processed before. The index alone does not show it: a kubelet that lost its
// containers counts from 0 again, so a later end can have a smaller index.
func (c *cursor) processed(t Termination) bool {
	if t.ContainerID != "" && instanceOf(t.ContainerID) == c.id {
		return true
	}
	return t.Index < c.next && !t.Finished.After(c.finished)
}

func (c *cursor) advance(t Termination) {
	c.next = t.Index + 1
	c.id = instanceOf(t.ContainerID)
	if at := plausible(t.Finished).Truncate(time.Second); at.After(c.finished) {
		c.finished = at
	}
}

// restore restores a dropped cursor from the recorded kills, if the pod is observed again.
func (c *cursor) restore(recorded []memory.OOMKill, o Observation) {
	for _, k := range recorded {
		if k.Container.UID != o.Container.UID {
			continue
		}
		for _, t := range o.Ended {
			if !t.Finished.Truncate(time.Second).After(k.Time) {
				c.next, c.finished = t.Index+1, k.Time
			}
		}
	}
}

// counterShows reports whether the kernel's counter showed kills in this instance.
func (c *cursor) counterShows(t Termination) bool {
	if c.counterID == 0 {
		return c.count > 0 && c.counterOf == t.Index
	}
	return c.count > 0 && c.counterID == instanceOf(t.ContainerID)
}

// Forget drops the cursors of pods that have been missing in existing for an hour. Until then, late events about a
// deleted pod are recognized as known. Recorded kills and their counts remain.
func (l *Ledger) Forget(existing map[types.UID]bool, now time.Time) {
	now = now.UTC().Truncate(time.Second)
	keys := make(map[podKey]bool, len(existing))
	for uid, exists := range existing {
		keys[keyOf(uid)] = exists
	}
	l.allExist = true
	for key, p := range l.pods {
		switch {
		case keys[key]:
			p.gone = time.Time{}
			continue
		case p.gone.IsZero():
			p.gone = now
		case now.Sub(p.gone) >= goneFor:
			l.drop(key)
			continue
		}
		l.allExist = false
	}
	l.bytes = l.storedSize()
	for key := range l.notFollowed {
		if !keys[key] {
			delete(l.notFollowed, key)
		}
	}
}
