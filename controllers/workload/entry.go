// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/workload"
)

// entry holds the state of one workload, and the identities of its stored objects.
type entry struct {
	// mu is held during a reconcile, and for the final writes.
	mu sync.Mutex
	// owner is the UID of the workload; a new one of the same name starts with a new state. Empty: unknown.
	owner types.UID
	// namespace is the UID of its namespace.
	namespace types.UID
	// state is the state of the last saved step.
	state *workload.State
	// restUntil: samples alone cause no step before; zero: immediately.
	restUntil time.Time

	// checkpoint identifies the MemoryCheckpoint, with the resource version for the next write. saved has its counts and
	// started changes, written at savedAt.
	checkpoint object
	saved      v1alpha1.MemoryCheckpointStatus
	savedAt    time.Time
	// suspect: the result of the last write is unknown, so the object must be read before the next.
	suspect bool

	recommendation projection
}

// object identifies a stored object for the next write; its name follows from the workload. It is smaller than a
// metav1.ObjectMeta (250 bytes), of which each workload would have two.
type object struct {
	uid             types.UID
	resourceVersion string
}

func objectOf(o metav1.Object) object { return object{o.GetUID(), o.GetResourceVersion()} }

// meta returns the metadata for a write of the object.
func (o object) meta(w memory.WorkloadRef) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: w.Namespace, Name: policy.RecordName(w), UID: o.uid, ResourceVersion: o.resourceVersion,
	}
}

// states are the entries by workload. The queue gives a workload to one worker at a time.
type states struct {
	all sync.Map
	n   atomic.Int64
}

func (s *states) get(w memory.WorkloadRef) (*entry, bool) {
	v, found := s.all.Load(w)
	if !found {
		return nil, false
	}
	return v.(*entry), true
}

func (s *states) put(w memory.WorkloadRef, e *entry) {
	if _, had := s.all.Swap(w, e); !had {
		s.n.Add(1)
	}
}

func (s *states) drop(w memory.WorkloadRef) {
	if _, had := s.all.LoadAndDelete(w); had {
		s.n.Add(-1)
	}
}

func (s *states) len() int { return int(s.n.Load()) }

func (s *states) each(f func(memory.WorkloadRef, *entry) bool) {
	s.all.Range(func(k, v any) bool { return f(k.(memory.WorkloadRef), v.(*entry)) })
}

// former is what remains of a workload that was deleted, or that no profile governs.
type former struct {
	owner, namespace types.UID
	state            *workload.State
	at               time.Time
}

const (
	// formerKept is how long it may take to create a workload again: longer than to enlarge the volumes of a database.
	formerKept = time.Hour
	// formersMost bounds the memory, a few KiB each: Jobs of other names end all day.
	formersMost = 1000
)

// formers are the former workloads by name. The garbage collector deletes their records within seconds.
type formers struct {
	mu  sync.Mutex
	all map[memory.WorkloadRef]former
}

func (f *formers) keep(w memory.WorkloadRef, of former) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[memory.WorkloadRef]former{}
	}
	f.all[w] = of
	if len(f.all) <= formersMost {
		return
	}
	oldest := w
	for other, o := range f.all {
		if o.at.Before(f.all[oldest].at) {
			oldest = other
		}
	}
	delete(f.all, oldest)
}

// of returns what remains of a workload of that name with another UID in this namespace; nil: nothing. A namespace that
// is deleted and created again may be another tenant's.
func (f *formers) of(w memory.WorkloadRef, uid, namespace types.UID, now time.Time) *workload.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	if of, found := f.all[w]; found && of.owner != uid && of.namespace == namespace && now.Sub(of.at) < formerKept {
		return of.state
	}
	return nil
}

func (f *formers) drop(w memory.WorkloadRef) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, w)
}
