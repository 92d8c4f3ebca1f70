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

const reportLong = `Write one page of HTML about the workloads of a namespace, or of the cluster, most urgent first:
use against requests and limits in the last 35 days and two days with OOM kills and stalls, memfit's changes and
their outcomes, requests above and below the recommendations, and requested memory that memfit has given back.

The page is self-contained: send it by mail, or put it on any web server. Past requests and limits are drawn as
far as memfit's changes, OOM kills and stalls show them. Use is the highest of any replica in each day or hour.
The curves are read from MemoryCheckpoints; without the right to read them the page has only a table and a note.
Nothing is written to the cluster.`

const reportExample = `  kubectl memfit report -n shop > shop.html

  # The whole cluster, with the cost of the requested memory
  kubectl memfit report -A --price-per-gib-month 3.20 --currency EUR > memfit.html`

func reportCommand() *cobra.Command {
	v := readingAll(&cobra.Command{
		Use:   "report [-n NAMESPACE | -A]",
		Short: "Write a page of HTML: use, sizes, OOM kills and changes of each workload",
		Long:  reportLong, Example: reportExample,
	})
	in := &htmlreport.Input{}
	v.Flags().Float64Var(
		&in.PricePerGiBMonth, "price-per-gib-month", 0, "monthly price of a GiB of requested memory; 0: show no costs",
	)
	v.Flags().StringVar(&in.Currency, "currency", "USD", "the currency of that price")
	return v.runs(func(v *verb) error { return writeReport(v, in) })
}

func writeReport(v *verb, in *htmlreport.Input) error {
	if !(in.PricePerGiBMonth >= 0) { // NaN neither
		return fmt.Errorf("--price-per-gib-month is %v: set the monthly price of a GiB, or 0", in.PricePerGiBMonth)
	}
	if printers.IsTerminal(v.OutOrStdout()) {
		return errors.New("send the page to a file: kubectl memfit report > memfit.html")
	}
	if err := v.fill(in); err != nil {
		return err
	}
	for _, note := range in.Notes {
		v.warn("%s", note)
	}
	return htmlreport.Write(v.OutOrStdout(), in)
}

func (v *verb) fill(in *htmlreport.Input) (err error) {
	ctx, s := v.Context(), v.cluster
	if in.Recommendations, err = v.cluster.Recommendations(v.Context()); err != nil {
		return err
	}
	note := func(format string, args ...any) { in.Notes = append(in.Notes, fmt.Sprintf(format, args...)) }
	in.Place, in.Now = v.place(), time.Now()
	if s.Context != "" {
		in.Place += " of " + s.Context
	}
	records, err := v.records(in.Recommendations)
	if err != nil {
		note("The memory given back of DaemonSets by class of nodes is unknown: %v", err)
	}
	given := inventory.NewGivenBack(records)
	if err := s.EachPod(ctx, given.AddPod); err != nil {
		note("The memory given back is unknown: %v", err)
	} else {
		in.GivenBack = given.Differences
	}
	in.Histories = map[types.NamespacedName]map[string]*history.Container{}
	unread := 0
	err = s.EachCheckpoint(ctx, func(checkpoint *v1alpha1.MemoryCheckpoint) {
		of, more := historiesOf(checkpoint)
		in.Histories[types.NamespacedName{Namespace: checkpoint.Namespace, Name: checkpoint.Name}] = of
		unread += more
	})
	if err != nil {
		note("Curves are unavailable: %v", err)
	}
	if unread > 0 {
		note("The histories of %s are from another version of memfit than this plugin, so they have no curves.",
			format.Count(unread, "container"))
	}
	return nil
}

// historiesOf unpacks a checkpoint; unread counts the containers that could not be decoded.
func historiesOf(checkpoint *v1alpha1.MemoryCheckpoint) (of map[string]*history.Container, unread int) {
	of = map[string]*history.Container{}
	for _, packed := range checkpoint.Status.Containers {
		h := history.New()
		if checkpoint.Status.Version > v1alpha1.CheckpointVersion || h.UnmarshalBinary(packed.History) != nil {
			unread++
			continue
		}
		of[packed.Name] = h
	}
	return of, unread
}
