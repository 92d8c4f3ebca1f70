// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/workload"
)

// Priors has what memfit learned about young containers, by the program that they run. It is stored in the status of
// one MemoryCheckpoint in memfit's namespace; users may add priors in its annotation. A nil Priors is empty and learns
// nothing.
type Priors struct {
	Client client.Client
	// APIReader reads from the API server: checkpoints are never watched.
	APIReader client.Reader
	Namespace string        // memfit's
	Every     time.Duration // between two writes
	Clock     clock.PassiveClock

	mu    sync.Mutex
	known recommend.Priors
}

const priorsTimeout = 5 * time.Second // for one read and write

// Start calls Sync every Every until ctx ends, and then once more, on the leader.
func (p *Priors) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("priors")
	working := logf.IntoContext(context.WithoutCancel(ctx), log)
	wait.UntilWithContext(ctx, func(context.Context) { p.syncOnce(working) }, p.Every)
	p.syncOnce(working) // what was learned since the last time
	return nil
}

func (p *Priors) syncOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, priorsTimeout)
	defer cancel()
	if err := p.Sync(ctx); err != nil {
		logf.FromContext(ctx).Error(err, "Could not store the priors of young containers; retrying")
		p.add(nil) // makes p ready, so that workloads no longer wait
	}
}

// Sync adds the stored priors to p, and stores the result.
func (p *Priors) Sync(ctx context.Context) error {
	c := &v1alpha1.MemoryCheckpoint{}
	key := client.ObjectKey{Namespace: p.Namespace, Name: v1alpha1.PriorsName}
	err := p.APIReader.Get(ctx, key, c)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading MemoryCheckpoint %s: %w", key, err)
	}
	if c.Status.Version > v1alpha1.CheckpointVersion {
		return fmt.Errorf("MemoryCheckpoint %s has version %d: a newer memfit wrote it", key, c.Status.Version)
	}
	stored := recommend.Priors{}
	for _, text := range [][]byte{c.Status.Observed, []byte(c.Annotations[v1alpha1.PriorsAnnotation])} {
		read, err := recommend.ReadPriors(text, p.Clock.Now())
		if len(text) > 0 && err != nil { // an edited manifest, or a damaged status, which is overwritten
			logf.FromContext(ctx).Error(err, "Ignored invalid priors; apply the output of kubectl memfit export priors",
				"checkpoint", key)
		}
		stored.AddAll(read)
	}
	p.add(stored)
	p.mu.Lock()
	text, empty := p.known.Text(), len(p.known) == 0
	p.mu.Unlock()
	if empty || bytes.Equal(text, c.Status.Observed) {
		return nil
	}
	if apierrors.IsNotFound(err) {
		c.ObjectMeta = metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
		if err := p.Client.Create(ctx, c); err != nil {
			return fmt.Errorf("creating MemoryCheckpoint %s: %w", key, err)
		}
	}
	c.Status = v1alpha1.MemoryCheckpointStatus{Version: v1alpha1.CheckpointVersion, Observed: text}
	if err := p.Client.Status().Update(ctx, c); err != nil {
		return fmt.Errorf("writing MemoryCheckpoint %s: %w", key, err)
	}
	return nil
}

func (p *Priors) add(learned recommend.Priors) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = recommend.Priors{}
	}
	p.known.AddAll(learned)
}

// Ready reports whether the stored priors have been read. Before that, a young container could get too low a limit.
func (p *Priors) Ready() bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known != nil
}

func (p *Priors) learn(learned recommend.Priors) {
	if p != nil && len(learned) > 0 {
		p.add(learned)
	}
}

// of returns the priors of a workload's containers.
func (p *Priors) of(s *workload.Snapshot) recommend.Priors {
	if p == nil || s.Profile == nil || s.Template == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return workload.Known(p.known, s.Profile, s.Template)
}
