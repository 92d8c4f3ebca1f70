// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/memfit/memfit/internal/informers"
)

// Follow makes a manager observe failed pods for Kills, and new pods for Trials, on every replica.
func (h *Injector) Follow(mgr manager.Manager) error {
	add := func(options cache.Options, follow func(context.Context, cache.Cache) error) error {
		pods, err := cache.New(mgr.GetConfig(), options)
		if err != nil {
			return fmt.Errorf("creating a cache of pods: %w", err)
		}
		return errors.Join(
			mgr.Add(informers.EveryReplica(pods.Start)),
			mgr.Add(informers.EveryReplica(func(ctx context.Context) error { return follow(ctx, pods) })),
		)
	}
	return errors.Join(
		add(informers.FailedPods(mgr.GetScheme()), h.Kills.Follow),
		add(informers.PendingPods(mgr.GetScheme()), h.WatchNewPods),
	)
}
