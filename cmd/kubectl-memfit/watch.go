// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

// together is how long changes are gathered before their lines are printed: memfit writes several workloads in a row.
const together = time.Second

// change is a recommendation that was written.
type change struct {
	site int
	rec  v1alpha1.MemoryRecommendation
}

// watchStatus prints the status, then the workloads whose line changes, until it is interrupted or a cluster cannot be
// read.
func watchStatus(cmd *cobra.Command, q query) error {
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	answers, err := askAll(cmd, q.sites, statusOf)
	if err != nil {
		return err
	}
	statuses := make([]report.Status, 0, len(answers))
	for _, a := range answers {
		statuses = append(statuses, a.status)
	}
	all, shown := report.Join(statuses), map[string]string{}
	all.Sort(q.order)
	all.News(shown)
	options := q.options
	options.Layout, options.NoNotes = listing.NewLayout(), true
	if err := all.Write(cmd.OutOrStdout(), options); err != nil {
		return err
	}
	options.NoHeaders = options.NoHeaders || len(all.Workloads) > 0 || !options.Format.IsTable()

	changes, ended := make(chan change), make(chan error, len(q.sites))
	for i, s := range q.sites {
		go func() {
			ended <- s.Watch(ctx, s.Namespace, func(rec v1alpha1.MemoryRecommendation) {
				select {
				case changes <- change{i, rec}:
				case <-ctx.Done():
				}
			})
		}()
	}
	for {
		select {
		case err := <-ended:
			if errors.Is(err, context.Canceled) || err == nil {
				return nil
			}
			return err
		case first := <-changes:
			news := newsOf(q.sites, gathered(ctx, first, changes))
			news.Sort(q.order)
			if news.News(shown); len(news.Workloads) == 0 {
				continue
			}
			_, _ = io.WriteString(cmd.OutOrStdout(), options.Format.Separator())
			if err := news.Write(cmd.OutOrStdout(), options); err != nil {
				return err
			}
			options.NoHeaders = true
		}
	}
}

// gathered are the changes of a moment, the last one of each workload, by cluster.
func gathered(
	ctx context.Context, first change, changes <-chan change,
) map[int]map[string]v1alpha1.MemoryRecommendation {
	last := map[int]map[string]v1alpha1.MemoryRecommendation{}
	take := func(c change) {
		if last[c.site] == nil {
			last[c.site] = map[string]v1alpha1.MemoryRecommendation{}
		}
		last[c.site][c.rec.Namespace+"/"+c.rec.Name] = c.rec
	}
	take(first)
	enough := time.After(together)
	for {
		select {
		case c := <-changes:
			take(c)
		case <-enough:
			return last
		case <-ctx.Done():
			return last
		}
	}
}

// newsOf is the status of the workloads that were written.
func newsOf(sites []site, written map[int]map[string]v1alpha1.MemoryRecommendation) report.Status {
	var statuses []report.Status
	for _, i := range slices.Sorted(maps.Keys(written)) {
		statuses = append(statuses, report.NewStatus(sites[i].name, slices.Collect(maps.Values(written[i])), nil))
	}
	return report.Join(statuses)
}
