// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/records"
	"github.com/memfit/memfit/internal/workload"
)

// load returns the state of a workload: from memory, or from its MemoryCheckpoint after a restart, a change of leader,
// or a write with unknown result.
func (r *Reconciler) load(ctx context.Context, s *workload.Snapshot) (*entry, error) {
	ref := s.Owner.Ref
	e, known := r.states.get(ref)
	if known { // Flush may be writing it
		e.mu.Lock()
		defer e.mu.Unlock()
	}
	// deleted and created again, perhaps with another program
	if known && e.owner != "" && s.Owner.UID != "" && e.owner != s.Owner.UID {
		r.drop(ref)
		known = false
	}
	if known && !e.suspect {
		return e, nil
	}
	stored, namespace := &v1alpha1.MemoryCheckpoint{}, r.namespaceUID(ctx, ref.Namespace)
	usable, err := r.read(ctx, s, stored)
	if !usable {
		r.rememberStored(s, stored, namespace)
		stored = nil
	}
	if err != nil {
		return nil, err
	}
	if !known {
		e = &entry{state: workload.NewState(), owner: s.Owner.UID, namespace: namespace}
		if e.owner == "" && stored == nil { // a record written now would have no owner
			return nil, fmt.Errorf("%w: the UID of %s", errNotYet, ref)
		}
	}
	if err := e.restore(ctx, stored); err != nil {
		return nil, err
	}
	if !known {
		if err := r.identifyRecommendation(ctx, s, e); err != nil {
			return nil, err
		}
	}
	r.states.put(ref, e)
	return e, nil
}

// read reads a record of the workload from the API server, and reports whether a usable one exists.
func (r *Reconciler) read(ctx context.Context, s *workload.Snapshot, record client.Object) (usable bool, err error) {
	key := client.ObjectKey{Namespace: s.Owner.Ref.Namespace, Name: policy.RecordName(s.Owner.Ref)}
	switch err := r.APIReader.Get(ctx, key, record); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading record %s: %w", key, err)
	}
	return r.claim(ctx, s, record)
}

// restore replaces the state with the stored state. But if the stored object still has the resource version of the last
// successful write, the write with an unknown result did not happen, and the state in memory remains valid.
func (e *entry) restore(ctx context.Context, stored *v1alpha1.MemoryCheckpoint) error {
	switch {
	case stored == nil: // never written, or deleted: the next step writes the state in memory
		e.adopt(&v1alpha1.MemoryCheckpoint{})
		return nil
	case stored.ResourceVersion == e.checkpoint.resourceVersion:
		e.suspect = false
		return nil
	case stored.Status.Version == 0: // created and still empty
		e.adopt(stored)
		return nil
	}
	lost, err := e.state.Unpack(stored)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if len(lost) > 0 {
		logf.FromContext(ctx).Error(errors.Join(lost...), "Dropped unreadable histories of containers")
	}
	e.adopt(stored)
	return nil
}

// adopt records that c is the stored object, for the next write.
func (e *entry) adopt(c *v1alpha1.MemoryCheckpoint) {
	e.checkpoint, e.suspect = objectOf(c), false
	e.saved = v1alpha1.MemoryCheckpointStatus{
		Ledger: slices.Clone(c.Status.Ledger), Sizing: slices.Clone(c.Status.Sizing),
		Published: slices.Clone(c.Status.Published),
	}
}

// due reports whether a checkpoint with this status must be written now. Counts and started changes never wait. History
// may wait, because losing minutes of samples changes no size.
func (e *entry) due(status *v1alpha1.MemoryCheckpointStatus, histories bool, every time.Duration, now time.Time) bool {
	return !bytes.Equal(status.Ledger, e.saved.Ledger) || !bytes.Equal(status.Sizing, e.saved.Sizing) ||
		!bytes.Equal(status.Published, e.saved.Published) ||
		histories && now.Sub(e.savedAt) >= every
}

// save writes the next state into the checkpoint, if a write is due, and makes it the current state. After an error,
// the state in memory is unchanged, and the events remain in the inbox.
func (r *Reconciler) save(
	ctx context.Context, owner memory.Workload, e *entry, next *workload.State, now time.Time,
) error {
	status, err := next.Pack()
	if err != nil {
		return err
	}
	if e.due(&status, next.HasHistory(), r.Settings.CheckpointEvery, now) {
		if err := next.PackHistories(&status); err != nil {
			return err
		}
		e.suspect = true // until the result of the write is known
		if err := r.write(ctx, owner, e, status); err != nil {
			return err
		}
		e.savedAt = now
	}
	e.state = next
	return nil
}

func newRecord(of memory.Workload) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Namespace: of.Ref.Namespace, Name: policy.RecordName(of.Ref), OwnerReferences: records.Owners(of.Ref, of.UID),
	}
	platform, _, _ := strings.Cut(of.Ref.Name, "-") // only the names of identities begin with one
	switch {
	case of.Ref.NodeClass != "":
		m.Labels = map[string]string{v1alpha1.IdentityLabel: identity.ByNode}
	case identity.IsIdentity(of.Ref):
		m.Labels = map[string]string{v1alpha1.IdentityLabel: platform}
	}
	return m
}

func (r *Reconciler) write(
	ctx context.Context, owner memory.Workload, e *entry, status v1alpha1.MemoryCheckpointStatus,
) error {
	c := &v1alpha1.MemoryCheckpoint{ObjectMeta: e.checkpoint.meta(owner.Ref)}
	if c.ResourceVersion == "" {
		c.ObjectMeta = newRecord(owner)
		if err := r.Create(ctx, c); err != nil {
			return fmt.Errorf("%w: creating MemoryCheckpoint %s/%s: %w", errNotSaved, c.Namespace, c.Name, err)
		}
		e.adopt(c) // still empty; the state is written below
		e.suspect = true
	}
	c.Status = status
	// The resource version makes this an optimistic lock: if another leader wrote meanwhile, its state wins.
	if err := r.Status().Update(ctx, c); err != nil {
		return fmt.Errorf("%w: writing MemoryCheckpoint %s/%s: %w", errNotSaved, c.Namespace, c.Name, err)
	}
	e.adopt(c)
	return nil
}

// identifyRecommendation reads the stored recommendation, only to determine whether and how to write it.
func (r *Reconciler) identifyRecommendation(ctx context.Context, s *workload.Snapshot, e *entry) error {
	e.recommendation = projection{}
	var stored v1alpha1.MemoryRecommendation
	if usable, err := r.read(ctx, s, &stored); err != nil || !usable {
		return err
	}
	e.recommendation = e.projectionOf(&stored)
	return nil
}

// flush writes a workload's history now.
func (r *Reconciler) flush(ctx context.Context, ref memory.WorkloadRef, e *entry) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.suspect || e.checkpoint.resourceVersion == "" {
		return nil
	}
	e.savedAt = time.Time{}
	return r.save(ctx, memory.Workload{Ref: ref, UID: e.owner}, e, e.state.Clone(), r.Clock.Now())
}

// Flush writes every history that is newer than its checkpoint. It runs when memfit stops, so that a rolling update
// loses nothing; a crash loses at most CheckpointEvery of samples and no kill. Writes run concurrently, because there
// are only seconds for ten thousand of them.
func (r *Reconciler) Flush(ctx context.Context) {
	all := r.states.workloads()
	workqueue.ParallelizeUntil(ctx, workers, len(all), func(i int) {
		if e, known := r.states.get(all[i]); known {
			if err := r.flush(ctx, all[i], e); err != nil {
				logf.FromContext(ctx).Error(err, "Could not write the latest history", "workload", all[i].String())
			}
		}
	})
}

// entry holds the state of one workload, and the identities of its stored objects.
type entry struct {
	mu        sync.Mutex      // held during a reconcile, and for the final writes
	owner     types.UID       // of the workload; another UID starts with a new state. Empty: unknown
	namespace types.UID       // of the workload's namespace; empty: unknown
	state     *workload.State // of the last saved step
	restUntil time.Time       // before this time, samples alone cause no step

	checkpoint object                          // the MemoryCheckpoint, for the next write
	saved      v1alpha1.MemoryCheckpointStatus // its counts and started changes
	savedAt    time.Time
	// suspect is true if the result of the last write is unknown: then the next reconcile must read the object first.
	suspect bool

	recommendation projection
}

// object identifies a stored object for the next write, without the name, which follows from the workload. Each
// workload has two; a metav1.ObjectMeta would take 250 bytes.
type object struct {
	uid             types.UID
	resourceVersion string
}

func objectOf(o metav1.Object) object { return object{o.GetUID(), o.GetResourceVersion()} }

func (o object) meta(w memory.WorkloadRef) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: w.Namespace, Name: policy.RecordName(w), UID: o.uid, ResourceVersion: o.resourceVersion,
	}
}

// states has the entries by workload. Only one worker at a time reconciles a workload.
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

func (s *states) workloads() (all []memory.WorkloadRef) {
	for k := range s.all.Range {
		all = append(all, k.(memory.WorkloadRef))
	}
	return all
}
