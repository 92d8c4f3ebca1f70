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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/records"
	"github.com/memfit/memfit/internal/workload"
)

// load returns what is known of a workload: from memory, or from its MemoryCheckpoint after a restart, a change of
// leader, or a write that may or may not have succeeded.
func (r *Reconciler) load(ctx context.Context, s *workload.Snapshot) (*entry, error) {
	ref := s.Owner.Ref
	e, known := r.states.get(ref)
	if known { // Flush may be writing it
		e.mu.Lock()
		defer e.mu.Unlock()
	}
	// deleted and made again: maybe another program
	if known && e.owner != "" && s.Owner.UID != "" && e.owner != s.Owner.UID {
		r.drop(ref)
		known = false
	}
	if known && !e.suspect {
		return e, nil
	}
	stored := &v1alpha1.MemoryCheckpoint{}
	switch usable, err := r.read(ctx, s, stored); {
	case err != nil:
		return nil, err
	case !usable:
		stored = nil
	}
	if !known {
		e = &entry{state: workload.NewState(), owner: s.Owner.UID}
		if e.owner == "" && stored == nil { // what is written now would be nobody's
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

// read reads a record of the workload from the API server, and reports whether there is one that may be used.
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

// restore replaces the state by the stored one, unless the stored object still has the resource version of the last
// write that is known to have succeeded: then the write in doubt did not happen, and the state in memory is valid.
func (e *entry) restore(ctx context.Context, stored *v1alpha1.MemoryCheckpoint) error {
	switch {
	case stored == nil: // nothing was written, or somebody deleted it: what is in memory is written again
		e.adopt(&v1alpha1.MemoryCheckpoint{})
		return nil
	case stored.ResourceVersion == e.checkpoint.resourceVersion:
		e.suspect = false
		return nil
	case stored.Status.Version == 0: // created, and nothing written into it yet
		e.adopt(stored)
		return nil
	}
	lost, err := e.state.Unpack(stored)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if len(lost) > 0 {
		logf.FromContext(ctx).Error(errors.Join(lost...), "Beginning a container's history afresh")
	}
	e.adopt(stored)
	return nil
}

// adopt makes c the version that the next write builds on.
func (e *entry) adopt(c *v1alpha1.MemoryCheckpoint) {
	e.checkpoint, e.suspect = objectOf(c), false
	e.saved = v1alpha1.MemoryCheckpointStatus{
		Ledger: slices.Clone(c.Status.Ledger), Sizing: slices.Clone(c.Status.Sizing),
		Published: slices.Clone(c.Status.Published),
	}
}

// due reports whether a checkpoint with this status must be written now. What was counted or begun never waits;
// history may, because losing minutes of samples changes no number.
func (e *entry) due(status *v1alpha1.MemoryCheckpointStatus, histories bool, every time.Duration, now time.Time) bool {
	return !bytes.Equal(status.Ledger, e.saved.Ledger) || !bytes.Equal(status.Sizing, e.saved.Sizing) ||
		!bytes.Equal(status.Published, e.saved.Published) ||
		histories && now.Sub(e.savedAt) >= every
}

// save is the one write of a reconcile that counts: when it returns nil, the next state is what memfit goes on with.
// When it fails, the state in memory is as it was, and the events stay in the inbox.
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
		e.suspect = true // until it is known what became of it
		if err := r.write(ctx, owner, e, status); err != nil {
			return err
		}
		e.savedAt = now
	}
	e.state = next
	return nil
}

// newRecord is the metadata of a record that does not exist yet.
func newRecord(of memory.Workload) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Namespace: of.Ref.Namespace, Name: policy.RecordName(of.Ref), OwnerReferences: records.Owners(of.Ref, of.UID),
	}
	platform, _, _ := strings.Cut(of.Ref.Name, "-")
	switch {
	case of.Ref.NodeClass != "":
		m.Labels = map[string]string{v1alpha1.IdentityLabel: identity.ByNode}
	case identity.Is(of.Ref):
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
		e.adopt(c) // it is still empty: the state is written to it below
		e.suspect = true
	}
	c.Status = status
	// The resource version makes this an optimistic lock: another leader that wrote meanwhile wins, and we start from its
	// state.
	if err := r.Status().Update(ctx, c); err != nil {
		return fmt.Errorf("%w: writing MemoryCheckpoint %s/%s: %w", errNotSaved, c.Namespace, c.Name, err)
	}
	e.adopt(c)
	return nil
}

// identifyRecommendation finds out what must be known of the stored recommendation to write it again. What it says
// counts only for whether it must be written: decisions rest on the checkpoint.
func (r *Reconciler) identifyRecommendation(ctx context.Context, s *workload.Snapshot, e *entry) error {
	e.recommendation = projection{}
	var stored v1alpha1.MemoryRecommendation
	if usable, err := r.read(ctx, s, &stored); err != nil || !usable {
		return err
	}
	e.recommendation = e.projectionOf(&stored)
	return nil
}

// flush writes the history before it is forgotten.
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
// loses nothing; a crash loses at most CheckpointEvery of samples and no kill. As many are written at once as usual: a
// write takes milliseconds in which memfit only waits, and there are seconds for ten thousand of them.
func (r *Reconciler) Flush(ctx context.Context) {
	var jobs sync.WaitGroup
	turns := make(chan struct{}, workers)
	r.states.each(func(ref memory.WorkloadRef, e *entry) bool {
		turns <- struct{}{}
		jobs.Go(func() {
			defer func() { <-turns }()
			if err := r.flush(ctx, ref, e); err != nil {
				logf.FromContext(ctx).Error(err, "Could not write the latest history", "workload", ref.String())
			}
		})
		return ctx.Err() == nil
	})
	jobs.Wait()
}
