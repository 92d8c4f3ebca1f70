// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

// together is how long changes are gathered before their lines are printed: memfit writes several workloads in a row.
const together = time.Second

// watchStatus prints the status, then the workloads whose line changes, until it is interrupted or a cluster cannot be
// read.
func watchStatus(c *call) error {
	ctx, stop := context.WithCancel(c.Context())
	defer stop()
	answers, err := askAll(c, statusOf)
	if err != nil {
		return err
	}
	all, shown := report.Join(answers, c.order), map[string]string{}
	all.News(shown)
	options := c.options
	options.Layout, options.NoNotes = listing.NewLayout(), true
	if err := all.Write(c.OutOrStdout(), options); err != nil {
		return err
	}
	options.NoHeaders = options.NoHeaders || len(all.Workloads) > 0 || !options.Format.IsTable()

	changes, ended := make(chan report.Status), make(chan error, len(c.sites))
	for _, s := range c.sites {
		go func() { ended <- s.changes(ctx, changes) }()
	}
	changed := map[[3]string]report.Status{} // the last status of each workload
	var due <-chan time.Time
	for {
		select {
		case err := <-ended:
			if errors.Is(err, context.Canceled) || err == nil {
				return nil
			}
			return err
		case one := <-changes:
			if len(changed) == 0 {
				due = time.After(together)
			}
			w := &one.Workloads[0]
			changed[[3]string{w.Cluster, w.Namespace, w.Recommendation}] = one
		case <-due:
			news := report.Join(slices.Collect(maps.Values(changed)), c.order)
			clear(changed)
			if news.News(shown); len(news.Workloads) == 0 {
				continue
			}
			if err := news.Write(c.OutOrStdout(), options); err != nil {
				return err
			}
			options.NoHeaders = true
		}
	}
}

// changes sends the status of each workload that exists, and of each whose recommendation is written, until ctx ends.
func (s site) changes(ctx context.Context, to chan<- report.Status) error {
	return s.Watch(ctx, s.Namespace, func(rec v1alpha1.MemoryRecommendation) {
		select {
		case to <- report.NewStatus(s.name, []v1alpha1.MemoryRecommendation{rec}, nil):
		case <-ctx.Done():
		}
	})
}
