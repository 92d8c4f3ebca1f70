// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package sweeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/identity"
)

// Expiry deletes records of identities of which no pod has existed for [identity.TimeToLive]: they have no owner with
// which the garbage collector would delete them.
type Expiry struct {
	// Client reads MemoryRecommendations from the cache, and deletes.
	client.Client
	// APIReader lists MemoryCheckpoints, metadata only.
	APIReader client.Reader
	// Clock tells the time.
	Clock clock.PassiveClock
}

// expireEvery is how often records are checked. The time to live is counted in days.
const expireEvery = 6 * time.Hour

// NeedLeaderElection is true: one that deletes is enough.
func (Expiry) NeedLeaderElection() bool { return true }

// Start checks all identities until ctx ends.
func (x Expiry) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("expiry")
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		deleted, err := x.Expire(ctx)
		if deleted > 0 {
			log.Info("Deleted records of identities without pods", "records", deleted)
		}
		if err != nil && ctx.Err() == nil {
			log.Error(err, "Could not check every record of an identity", "after", expireEvery.String())
		}
	}, expireEvery)
	return nil
}

// Expire deletes the records that have outlived their identity, and returns their number.
func (x Expiry) Expire(ctx context.Context) (deleted int, failed error) {
	var recs v1alpha1.MemoryRecommendationList
	if err := x.List(
		ctx, &recs, client.HasLabels{v1alpha1.IdentityLabel}, client.UnsafeDisableDeepCopy,
	); err != nil {
		return 0, fmt.Errorf("listing the MemoryRecommendations of identities: %w", err)
	}
	living := map[client.ObjectKey]bool{}
	for i := range recs.Items {
		rec := &recs.Items[i]
		if is := rec.Status.Identity; is == nil || x.Clock.Since(is.LastSeen.Time) < identity.TimeToLive {
			living[client.ObjectKeyFromObject(rec)] = true
			continue
		}
		// a copy: what the cache holds is shared
		gone, err := x.delete(ctx, &v1alpha1.MemoryRecommendation{ObjectMeta: *rec.ObjectMeta.DeepCopy()})
		deleted, failed = deleted+gone, errors.Join(failed, err)
	}
	n, err := x.expireCheckpoints(ctx, living)
	return deleted + n, errors.Join(failed, err)
}

// expireCheckpoints deletes checkpoints of identities that have no recommendation and are older than the time to live:
// those of identities that expired, and those of pods that no profile governs any more.
func (x Expiry) expireCheckpoints(ctx context.Context, living map[client.ObjectKey]bool) (deleted int, failed error) {
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MemoryCheckpointList"))
	for {
		if err := x.APIReader.List(
			ctx, page, client.HasLabels{v1alpha1.IdentityLabel}, client.Limit(sweepPage), client.Continue(page.Continue),
		); err != nil {
			return deleted, errors.Join(failed, fmt.Errorf("listing the MemoryCheckpoints of identities: %w", err))
		}
		for i := range page.Items {
			checkpoint := &page.Items[i]
			if living[client.ObjectKeyFromObject(checkpoint)] ||
				x.Clock.Since(checkpoint.CreationTimestamp.Time) < identity.TimeToLive {
				continue
			}
			checkpoint.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MemoryCheckpoint"))
			gone, err := x.delete(ctx, checkpoint)
			deleted, failed = deleted+gone, errors.Join(failed, err)
		}
		if page.Continue == "" || ctx.Err() != nil {
			return deleted, failed
		}
	}
}

// delete deletes this version of a record: one that was written meanwhile has a pod again.
func (x Expiry) delete(ctx context.Context, record client.Object) (int, error) {
	uid, version := record.GetUID(), record.GetResourceVersion()
	err := x.Delete(ctx, record, client.Preconditions{UID: &uid, ResourceVersion: &version})
	switch {
	case err == nil:
		return 1, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return 0, nil
	}
	return 0, fmt.Errorf("deleting %s/%s, whose identity has had no pod for 35 days: %w", record.GetNamespace(),
		record.GetName(), err)
}
