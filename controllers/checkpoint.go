// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/govern"
	"github.com/memfit/memfit/internal/owners"
	"github.com/memfit/memfit/internal/records"
)

// recall returns what is known of a workload: from memory, or from its MemoryCheckpoint after a restart or a change of leader.
func (r *WorkloadReconciler) recall(ctx context.Context, s *snapshot) (*remembered, error) {
	workload := s.owner.Ref
	m, known := r.memory.get(workload)
	if known && m.owner != "" && s.owner.UID != "" && m.owner != s.owner.UID { // deleted and made again: maybe another program
		r.memory.drop(workload)
		r.Metrics.forget(workload)
		known = false
	}
	if known && !m.suspect {
		return m, nil
	}
	var stored v1alpha1.MemoryCheckpoint
	key := client.ObjectKey{Namespace: workload.Namespace, Name: govern.RecordName(workload)}
	err := r.Live.Get(ctx, key, &stored)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading MemoryCheckpoint %s: %w", key, err)
	}
	found := err == nil
	if found {
		if found, err = r.claim(ctx, s, &stored); err != nil {
			return nil, err
		}
	}
	switch {
	case !known:
		m = newRemembered()
		if err := r.recallRecommendation(ctx, s, m); err != nil {
			return nil, err
		}
		if m.owner = s.owner.UID; m.owner == "" && !found { // what is written now would be nobody's
			return nil, fmt.Errorf("%w: the UID of %s", errNotYet, workload)
		}
	case !found && m.checkpoint.ResourceVersion == "":
		m.suspect = false // nothing was written, and nothing is there
		return m, nil
	case found && stored.ResourceVersion == m.checkpoint.ResourceVersion:
		m.suspect = false // the write that failed did not happen
		return m, nil
	case found && m.attempted != nil && bytes.Equal(stored.Status.Ledger, m.attempted):
		m.adopt(&stored) // the write happened, only its answer was lost
		return m, m.rollBack()
	}
	if found {
		lost, err := m.unpack(&stored)
		if err != nil {
			return nil, err
		}
		if len(lost) > 0 {
			logf.FromContext(ctx).Error(errors.Join(lost...), "Beginning a container's history afresh")
		}
	} else {
		stored = v1alpha1.MemoryCheckpoint{}
		m.saved = nil // somebody deleted it: what is in memory is written again
	}
	m.adopt(&stored)
	r.memory.put(workload, m)
	return m, nil
}

// adopt makes c the version that the next write builds on.
func (m *remembered) adopt(c *v1alpha1.MemoryCheckpoint) {
	m.checkpoint = v1alpha1.MemoryCheckpoint{ObjectMeta: metav1.ObjectMeta{
		Name: c.Name, Namespace: c.Namespace, UID: c.UID, ResourceVersion: c.ResourceVersion,
	}}
	m.suspect, m.attempted = false, nil
	if len(c.Status.Ledger) > 0 {
		m.saved = slices.Clone(c.Status.Ledger)
	}
	m.savedRestarts, m.savedSizing = slices.Clone(c.Status.Drift), slices.Clone(c.Status.Sizing)
}

// save writes the checkpoint if it is due. When it returns nil the ledger is safe. When it fails the ledger in memory is what it
// was before, and the mail must go back.
func (r *WorkloadReconciler) save(ctx context.Context, owner owners.Owner, m *remembered, now time.Time) error {
	status, err := m.pack()
	if err != nil || !m.due(&status, r.CheckpointEvery, now) {
		return err
	}
	if err := m.packHistories(&status); err != nil {
		return err
	}
	m.attempted = status.Ledger
	if err := r.write(ctx, owner, m, status); err != nil {
		m.suspect = true
		if undo := m.rollBack(); undo != nil {
			r.memory.drop(owner.Ref) // the copy on the API server is the truth
		}
		return err
	}
	m.savedAt = now
	return nil
}

func (r *WorkloadReconciler) write(ctx context.Context, owner owners.Owner, m *remembered, status v1alpha1.MemoryCheckpointStatus) error {
	c := m.checkpoint.DeepCopy()
	if c.ResourceVersion == "" {
		c.ObjectMeta = metav1.ObjectMeta{Namespace: owner.Ref.Namespace, Name: govern.RecordName(owner.Ref), OwnerReferences: []metav1.OwnerReference{records.Owner(owner.Ref, owner.UID)}}
		if err := r.Create(ctx, c); err != nil {
			return fmt.Errorf("creating MemoryCheckpoint %s/%s: %w", c.Namespace, c.Name, err)
		}
	}
	c.Status = status
	// The resource version makes this an optimistic lock: another leader that wrote meanwhile wins, and we start from its state.
	if err := r.Status().Update(ctx, c); err != nil {
		return fmt.Errorf("writing MemoryCheckpoint %s/%s: %w", c.Namespace, c.Name, err)
	}
	m.adopt(c)
	return nil
}

// recallRecommendation takes over what a recommendation already says, so that a restart of memfit changes nothing in it.
func (r *WorkloadReconciler) recallRecommendation(ctx context.Context, s *snapshot, m *remembered) error {
	workload := s.owner.Ref
	var stored v1alpha1.MemoryRecommendation
	key := client.ObjectKey{Namespace: workload.Namespace, Name: govern.RecordName(workload)}
	if err := r.Live.Get(ctx, key, &stored); err != nil {
		if apierrors.IsNotFound(err) {
			m.recommendation = projection{}
			return nil
		}
		return fmt.Errorf("reading MemoryRecommendation %s: %w", key, err)
	}
	if usable, err := r.claim(ctx, s, &stored); err != nil || !usable {
		m.recommendation = projection{}
		return err
	}
	m.recommendation, m.standing = projectionOf(&stored), sizes(&stored.Status)
	m.used = map[string]v1alpha1.ContainerRecommendation{}
	for _, c := range stored.Status.Containers {
		m.used[c.Container] = v1alpha1.ContainerRecommendation{Use: c.Use, UseSeen: c.UseSeen}
		source, past := sourcesOf(c.Evidence.Source)
		m.source, m.past = or(m.source, source), or(m.past, past)
	}
	m.recallShapes(&stored.Status)
	m.liveSets = liveSets(&stored.Status)
	if c := stored.Status.Coverage; c != nil {
		m.outOfDate = c.Missed + c.Stale
	}
	m.conflicted = inConflict(&stored.Status) != ""
	return nil
}
