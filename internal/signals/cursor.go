// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// idKept is how much of a container ID is kept: 48 bits tell the instances of one container apart.
const idKept = 12

func shortID(id string) string { return id[max(0, len(id)-idKept):] }

func (l *Ledger) cursor(ref memory.ContainerRef) *cursor {
	if p := l.pods[ref.UID]; p != nil {
		return p.containers[ref.Container]
	}
	return nil
}

func (l *Ledger) newCursor(ref memory.ContainerRef) *cursor {
	p := l.pods[ref.UID]
	if p == nil {
		p = &pod{containers: map[string]*cursor{}}
		l.pods[ref.UID] = p
	}
	c := p.containers[ref.Container]
	if c == nil {
		c = &cursor{}
		p.containers[ref.Container] = c
	}
	return c
}

// accounted is true for an end that was seen before. The number alone cannot say: the kubelet may start counting anew when it lost its
// containers, and then a later end has a smaller number.
func (c *cursor) accounted(t Termination) bool {
	if t.ContainerID != "" && shortID(t.ContainerID) == c.id {
		return true
	}
	return t.Index < c.next && !t.Finished.After(c.finished)
}

func (c *cursor) advance(t Termination) {
	c.next = t.Index + 1
	c.id = shortID(t.ContainerID)
	if at := t.Finished.UTC().Truncate(time.Second); at.After(c.finished) {
		c.finished = at
	}
}

// recall takes up where the kills on file end, for a pod whose cursor was dropped and that is heard of again.
func (c *cursor) recall(onFile []memory.OOMKill, o Observation) {
	for _, k := range onFile {
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

// sawLimit remembers the limit of the instance that lives, so that its death can be told with the limit of that time.
func (c *cursor) sawLimit(o Observation) {
	if !o.Running.IsZero() {
		c.limited, c.limit, c.asked, c.limitOf = true, o.Limit, o.Asked, o.Restarts
	}
}

// counts is true when the kernel's counter showed kills in this instance.
func (c *cursor) counts(t Termination) bool {
	if c.counterID == "" {
		return c.count > 0 && c.counterOf == t.Index
	}
	return c.count > 0 && c.counterID == shortID(t.ContainerID)
}

// Forget drops the cursors of pods that are not in live and have not been for an hour, so that a late event about a deleted pod is
// still recognised. Kills and counters stay.
func (l *Ledger) Forget(live map[types.UID]bool, now time.Time) {
	now = now.UTC().Truncate(time.Second)
	for uid, p := range l.pods {
		switch {
		case live[uid]:
			p.gone = time.Time{}
		case p.gone.IsZero():
			p.gone = now
		case now.Sub(p.gone) >= goneFor:
			delete(l.pods, uid)
		}
	}
	if excess := len(l.pods) - podsKept; excess > 0 {
		for _, uid := range l.goneLongest()[:excess] {
			delete(l.pods, uid)
		}
	}
}

// goneLongest lists the pods in the order in which they may be forgotten: gone ones first, the longest gone before others.
func (l *Ledger) goneLongest() []types.UID {
	uids := make([]types.UID, 0, len(l.pods))
	for uid := range l.pods {
		uids = append(uids, uid)
	}
	slices.SortFunc(uids, func(a, b types.UID) int {
		x, y := l.pods[a].gone, l.pods[b].gone
		if x.IsZero() != y.IsZero() {
			if x.IsZero() {
				return 1
			}
			return -1
		}
		return cmp.Or(x.Compare(y), cmp.Compare(a, b))
	})
	return uids
}
