// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package sweeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/records"
)

// Sweeper deletes records of workloads that do not exist. Its Start checks all of them once, on the leader: an older
// memfit left records without an owner, which the garbage collector never removes, and workloads may have gone while no
// memfit ran.
type Sweeper struct {
	// Client reads workloads from the cache, and deletes.
	client.Client
	// APIReader lists records, metadata only, and confirms from the API server that a workload is gone before anything is
	// deleted.
	APIReader client.Reader
}

const (
	// sweepPage is how many records one request reads: some 0.5 MB of metadata.
	sweepPage = 500
	// sweepAgain is when records are checked again of which something could not be read.
	sweepAgain = 10 * time.Minute
)

// NeedLeaderElection is true: one that deletes is enough.
func (Sweeper) NeedLeaderElection() bool { return true }

// Start sweeps, and again while the API server does not answer. One record is checked after the other: 10,000 orphaned
// ones take minutes, in which the API server serves less load than for a few kubectl commands.
func (w Sweeper) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("sweep")
	_ = wait.PollUntilContextCancel(ctx, sweepAgain, true, func(ctx context.Context) (bool, error) {
		deleted, err := w.Sweep(ctx)
		if deleted > 0 {
			log.Info("Deleted records of workloads that do not exist", "records", deleted)
		}
		if err != nil && ctx.Err() == nil {
			log.Error(err, "Could not check every record; they are checked again", "after", sweepAgain.String())
		}
		return err == nil, nil
	})
	return nil
}

// Sweep checks every record once, and returns how many it deleted.
func (w Sweeper) Sweep(ctx context.Context) (deleted int, failed error) {
	for _, kind := range []string{"MemoryRecommendation", "MemoryCheckpoint"} {
		n, err := w.sweepKind(ctx, kind)
		deleted, failed = deleted+n, errors.Join(failed, err)
	}
	return deleted, failed
}

func (w Sweeper) sweepKind(ctx context.Context, kind string) (deleted int, failed error) {
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
	for {
		if err := w.APIReader.List(ctx, page, client.Limit(sweepPage), client.Continue(page.Continue)); err != nil {
			return deleted, errors.Join(failed, fmt.Errorf("listing %ss: %w", kind, err))
		}
		for i := range page.Items {
			record := &page.Items[i]
			record.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
			gone, err := w.check(ctx, record)
			if gone {
				deleted++
			}
			failed = errors.Join(failed, err)
		}
		if page.Continue == "" || ctx.Err() != nil {
			return deleted, failed
		}
	}
}

// check asks the cache first, which answers for nearly all.
func (w Sweeper) check(ctx context.Context, record client.Object) (deleted bool, err error) {
	of, known := recordedFor(record)
	if !known {
		return false, nil
	}
	presence, err := Finder{Reader: w.Client, APIReader: w.APIReader}.Find(ctx, of)
	if action, _ := records.Judge(MetaOf(record), of, presence); err != nil || action != records.Delete {
		return false, err
	}
	return w.Judge(ctx, of, record)
}

// recordedFor is the workload that a record is about: its owner, or the one in its name.
func recordedFor(record client.Object) (memory.WorkloadRef, bool) {
	for _, ref := range record.GetOwnerReferences() {
		of := memory.WorkloadRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: record.GetNamespace(), Name: ref.Name}
		if policy.RecordName(of) == record.GetName() {
			return of, true
		}
	}
	return policy.WorkloadNamed(record.GetNamespace(), record.GetName())
}

// Clear deletes both records of a workload, if the API server confirms that they are orphaned.
func (w Sweeper) Clear(ctx context.Context, of memory.WorkloadRef) error {
	var failed error
	for _, record := range []client.Object{&v1alpha1.MemoryRecommendation{}, &v1alpha1.MemoryCheckpoint{}} {
		key := client.ObjectKey{Namespace: of.Namespace, Name: policy.RecordName(of)}
		err := w.APIReader.Get(ctx, key, record)
		if err == nil {
			_, err = w.Judge(ctx, of, record)
		}
		if client.IgnoreNotFound(err) != nil {
			failed = errors.Join(failed, fmt.Errorf("clearing what was recorded of %s: %w", of, err))
		}
	}
	return failed
}

// Judge asks the API server for the workload of a record, and deletes the record if it is orphaned: this very version
// of it, and no later one.
func (w Sweeper) Judge(ctx context.Context, of memory.WorkloadRef, record client.Object) (deleted bool, err error) {
	presence, err := Finder{Reader: w.Client, APIReader: w.APIReader}.Confirm(ctx, of)
	action, why := records.Judge(MetaOf(record), of, presence)
	if err != nil || action != records.Delete {
		return false, err
	}
	uid, version := record.GetUID(), record.GetResourceVersion()
	if err := w.Delete(
		ctx, record, client.Preconditions{UID: &uid, ResourceVersion: &version},
	); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("deleting %s/%s, because %s: %w", record.GetNamespace(), record.GetName(), why, err)
	}
	logf.FromContext(ctx).Info("Deleted a record", "record", client.ObjectKeyFromObject(record), "why", why)
	return true, nil
}
