// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/htmlreport"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/inventory"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/history"
)

const reportLong = `Write an HTML page about the workloads of a namespace or of the cluster, most urgent first. It has:
  - charts of memory use (35 days, and two days by hour) with requests, limits, OOM kills and stalls
  - memfit's changes and their outcomes
  - requests above and below the recommendations, and how much memfit has lowered requests so far

The page is self-contained: send it by mail, or put it on any web server. Charts show the highest use of any replica in
each day or hour. Past requests and limits are known only from memfit's changes, OOM kills and stalls. Without
permission to read MemoryCheckpoints, the page has a note instead of charts. Nothing is written to the cluster.`

const reportExample = `  kubectl memfit report -n shop > shop.html

  # The whole cluster, with the cost of the requested memory
  kubectl memfit report -A --price-per-gib-month 3.20 --currency EUR > memfit.html`

func reportCommand() *cobra.Command {
	v := newVerbAllNamespaces(&cobra.Command{
		Use:   "report [-n NAMESPACE | -A]",
		Short: "Write an HTML page with use, sizes, OOM kills and changes of each workload",
		Long:  reportLong, Example: reportExample,
	})
	in := &htmlreport.Input{}
	v.Flags().Float64Var(
		&in.PricePerGiBMonth, "price-per-gib-month", 0, "price of 1 GiB of requested memory per month; 0 omits costs",
	)
	v.Flags().StringVar(&in.Currency, "currency", "USD", "currency of --price-per-gib-month")
	return v.withRun(func(v *verb) error { return writeReport(v, in) })
}

func writeReport(v *verb, in *htmlreport.Input) error {
	if !(in.PricePerGiBMonth >= 0) { // also true for NaN
		return fmt.Errorf("--price-per-gib-month %v is invalid: set the monthly price of 1 GiB, or 0", in.PricePerGiBMonth)
	}
	if printers.IsTerminal(v.OutOrStdout()) {
		return errors.New("standard output is a terminal: write to a file, as in kubectl memfit report > memfit.html")
	}
	if err := v.readInput(in); err != nil {
		return err
	}
	for _, note := range in.Notes {
		v.warn("%s", note)
	}
	return htmlreport.Write(v.OutOrStdout(), in)
}

func (v *verb) readInput(in *htmlreport.Input) (err error) {
	ctx, c := v.Context(), v.cluster
	if in.Recommendations, err = c.Recommendations(ctx); err != nil {
		return err
	}
	note := func(format string, args ...any) { in.Notes = append(in.Notes, fmt.Sprintf(format, args...)) }
	in.Place, in.Now = v.place(), time.Now()
	if c.Context != "" {
		in.Place += " of " + c.Context
	}
	records, err := v.records(in.Recommendations)
	if err != nil {
		note("Savings of DaemonSets with node classes are unknown: %v", err)
	}
	savings := inventory.NewSavings(records)
	if err := c.EachPod(ctx, savings.AddPod); err != nil {
		note("Savings are unknown: %v", err)
	} else {
		in.Savings = savings.Differences
	}
	in.Histories = map[types.NamespacedName]map[string]*history.Container{}
	unreadable := 0
	err = c.EachCheckpoint(ctx, func(checkpoint *v1alpha1.MemoryCheckpoint) {
		histories, failed := historiesOf(checkpoint)
		in.Histories[types.NamespacedName{Namespace: checkpoint.Namespace, Name: checkpoint.Name}] = histories
		unreadable += failed
	})
	if err != nil {
		note("Charts are unavailable: %v", err)
	}
	if unreadable > 0 {
		note("%s without charts: another version of memfit wrote the history; use the plugin of that version",
			format.Count(unreadable, "container"))
	}
	return nil
}

// historiesOf decodes the histories of a checkpoint by container. unreadable counts those that it cannot decode.
func historiesOf(checkpoint *v1alpha1.MemoryCheckpoint) (histories map[string]*history.Container, unreadable int) {
	histories = map[string]*history.Container{}
	for _, packed := range checkpoint.Status.Containers {
		h := history.New()
		if checkpoint.Status.Version > v1alpha1.CheckpointVersion || h.UnmarshalBinary(packed.History) != nil {
			unreadable++
			continue
		}
		histories[packed.Name] = h
	}
	return histories, unreadable
}
