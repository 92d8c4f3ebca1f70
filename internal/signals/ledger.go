// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// KillsKept is the number of kills a ledger keeps in detail for each container name; older ones live on in the counters.
const KillsKept = 20

// Ledger remembers the OOM kills of one workload, each exactly once, in bounded space. The zero value is empty and ready. It marshals
// to compact JSON and continues from there as if nothing had happened. It is not safe for concurrent use.
type Ledger struct{}

// Update adds what the observations show and returns the kills that are new, oldest first. Observations may come in any order, twice,
// late, or after looks were missed. peak says the highest RSS seen in a container instance (0: none); nil means nobody knows.
func (l *Ledger) Update(obs []Observation, peak func(memory.ContainerRef) memory.Bytes, now time.Time) []memory.OOMKill {
	return nil
}

// Counter is one reading of container_oom_events_total: the kernel's count of kills inside one living container instance.
type Counter struct {
	Container memory.ContainerRef
	// ContainerID is the instance the series belongs to; empty when the source does not say.
	ContainerID string
	Count       int64
	// Time is when the kubelet took the reading.
	Time time.Time
}

// UpdateCounters adds kills of child processes that only the kernel's counter shows, and returns the new ones. Counters that fall
// were reset by a kubelet restart and count from there.
func (l *Ledger) UpdateCounters(readings []Counter, peak func(memory.ContainerRef) memory.Bytes, now time.Time) []memory.OOMKill {
	return nil
}

// Forget drops the cursors of pods that are not in live and have not been for an hour, so that a late event about a deleted pod is
// still recognised. Kills and counters stay.
func (l *Ledger) Forget(live map[types.UID]bool, now time.Time) {}

// Kills are the last kills of a container, oldest first, at most [KillsKept].
func (l *Ledger) Kills(container string) []memory.OOMKill { return nil }

// All are the kills kept in detail of all containers, oldest first.
func (l *Ledger) All() []memory.OOMKill { return nil }

// Total counts all kills of a container ever seen, also those no longer kept in detail.
func (l *Ledger) Total(container string) int64 { return 0 }

// Count counts the kills of one kind.
func (l *Ledger) Count(container string, kind memory.OOMKind) int64 { return 0 }

// Containers are the names of the containers with at least one kill, sorted.
func (l *Ledger) Containers() []string { return nil }

// Advice says in words what helps against a kind of kill, for a runtime as v1alpha1 spells it (may be empty).
func Advice(kind memory.OOMKind, runtime string) string { return "" }
