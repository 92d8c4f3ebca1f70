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

// entry is what the reconciler holds of one workload: its state, and what is known of the objects that it is written
// to.
type entry struct {
	// mu is held for a reconcile, and while everything is written at the end.
	mu sync.Mutex
	// owner is the UID of the workload; another of the same name starts afresh. Empty: not known.
	owner types.UID
	// state is what the last step that was saved made of it.
	state *workload.State
	// restUntil is when samples alone are a reason for a step again; zero: at once.
	restUntil time.Time

	// checkpoint identifies the MemoryCheckpoint; its resource version is what the next write builds on. saved is what it
	// holds of what was counted and begun, since savedAt.
	checkpoint object
	saved      v1alpha1.MemoryCheckpointStatus
	savedAt    time.Time
	// suspect: it is not known whether the last write succeeded, so the object is read before the next.
	suspect bool

	recommendation projection
}

// object is what must be known of an object to write it again; its name follows from the workload. A metav1.ObjectMeta
// takes 250 bytes, and there are two of them for each workload.
type object struct {
	uid             types.UID
	resourceVersion string
}

func objectOf(o metav1.Object) object { return object{o.GetUID(), o.GetResourceVersion()} }

// meta is what a write of the object says of it.
func (o object) meta(w memory.WorkloadRef) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: w.Namespace, Name: policy.RecordName(w), UID: o.uid, ResourceVersion: o.resourceVersion,
	}
}

// states are the entries by workload. The queue never gives one workload to two workers at a time.
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
