// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/workload"
)

// countAgain is the time between counts of identities of a profile at its bound, because some may have expired.
const countAgain = time.Minute

// identities bounds how many identities each profile has, classes of nodes included. Everyone who creates pods controls
// their labels, and each identity needs two objects in the API server.
type identities struct {
	mu       sync.Mutex
	profiles map[profile.Key]*counted
}

// counted has the identities of one profile.
type counted struct {
	all map[memory.WorkloadRef]struct{}
	at  time.Time
}

// beyond reports whether a new identity would exceed the bound of its profile.
func (r *Reconciler) beyond(ctx context.Context, s *workload.Snapshot) (bool, error) {
	if !identity.Is(s.Owner.Ref) && s.Owner.Ref.NodeClass == "" {
		return false, nil
	}
	key, most := s.Profile.Key(), cmp.Or(r.Settings.MaxIdentities, identity.MostOfProfile)
	r.identities.mu.Lock()
	defer r.identities.mu.Unlock()
	c := r.identities.profiles[key]
	if c == nil || len(c.all) >= most && r.Clock.Since(c.at) >= countAgain {
		var err error
		if c, err = r.countIdentities(ctx, key); err != nil {
			return false, err
		}
		if r.identities.profiles == nil {
			r.identities.profiles = map[profile.Key]*counted{}
		}
		r.identities.profiles[key] = c
	}
	if _, known := c.all[s.Owner.Ref]; !known && len(c.all) >= most {
		return true, nil
	}
	c.all[s.Owner.Ref] = struct{}{}
	return false, nil
}

// countIdentities finds the identities that have a recommendation from a profile.
func (r *Reconciler) countIdentities(ctx context.Context, of profile.Key) (*counted, error) {
	var recs v1alpha1.MemoryRecommendationList
	err := r.List(
		ctx, &recs, client.InNamespace(of.Namespace), client.HasLabels{v1alpha1.IdentityLabel}, client.UnsafeDisableDeepCopy,
	)
	if err != nil {
		return nil, fmt.Errorf("counting the identities of %s: %w", of, err)
	}
	c := &counted{all: map[memory.WorkloadRef]struct{}{}, at: r.Clock.Now()}
	for i := range recs.Items {
		if p := recs.Items[i].Status.Profile; p.Kind == of.Kind && p.Name == of.Name {
			c.all[workloadOf(&recs.Items[i])] = struct{}{}
		}
	}
	return c, nil
}
