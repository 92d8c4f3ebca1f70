// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/htmlreport"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/history"
)

const reportLong = `Write one page of HTML about the workloads of a namespace, or of the cluster, the one that most
needs a look first: what was used against requests and limits in the last 35 days and two days, OOM kills and
stalls on the curves, what memfit changed and what came of it, what is requested beyond what is recommended, and
what is missing.

The page loads nothing and runs nothing: it can be sent by mail or put on any web server. Requests and limits are
drawn as they are now. Use is the most that one replica used in each day or hour. The curves are read from
MemoryCheckpoints; without the right to read them there is a table alone, and the page says so. Nothing is written
to the cluster.`

const reportExample = `  kubectl memfit report -n shop > shop.html

  # The whole cluster, with what the requested memory costs
  kubectl memfit report -A --price-per-gib-month 3.20 --currency EUR > memfit.html`

func reportCommand() *cobra.Command {
	var output, currency string
	var price float64
	cmd := &cobra.Command{
		Use:   "report [-n NAMESPACE | -A] [-o html]",
		Short: "Write a page of HTML: use, sizes, OOM kills and changes of each workload",
		Long:  reportLong, Example: reportExample, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	r := reading(cmd, allNamespaces)
	outputFlag(cmd, &output, "html", "html")
	cmd.Flags().Float64Var(&price, "price-per-gib-month", 0, "what a GiB of requested memory costs a month; 0: no money")
	cmd.Flags().StringVar(&currency, "currency", "USD", "the currency of that price")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if _, err := listing.Parse(output, []string{"html"}); err != nil {
			return exit{exitFailed, err}
		}
		if !(price >= 0) {
			return exit{exitFailed, fmt.Errorf("--price-per-gib-month is %v: give what a GiB costs a month, or 0", price)}
		}
		if printers.IsTerminal(cmd.OutOrStdout()) {
			return exit{exitFailed, errors.New("send the page to a file: kubectl memfit report > memfit.html")}
		}
		return r.report(cmd, &htmlreport.Input{PricePerGiBMonth: price, Currency: currency, Now: time.Now()})
	}
	return cmd
}

func (r *reader) report(cmd *cobra.Command, in *htmlreport.Input) error {
	a, err := r.ask(cmd.Context())
	if err != nil {
		return err
	}
	in.Place, in.Recommendations = place(a.namespace), a.recs
	if a.Context != "" {
		in.Place += " of " + a.Context
	}
	checkpoints, err := a.Checkpoints(cmd.Context(), a.namespace)
	if err != nil {
		in.Notes = append(in.Notes, fmt.Sprintf("There are no curves: %v", err))
	}
	var unread int
	in.Histories, unread = historiesOf(checkpoints)
	if unread > 0 {
		in.Notes = append(in.Notes, fmt.Sprintf(
			"The histories of %s are of another version of memfit than this plugin: they have no curves.",
			format.Count(unread, "container"),
		))
	}
	for _, note := range in.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", note)
	}
	return htmlreport.Write(cmd.OutOrStdout(), in)
}

// historiesOf unpacks checkpoints; unread counts those that cannot be.
func historiesOf(checkpoints []v1alpha1.MemoryCheckpoint) (all map[string]map[string]*history.Container, unread int) {
	all = map[string]map[string]*history.Container{}
	for i := range checkpoints {
		of := map[string]*history.Container{}
		for _, packed := range checkpoints[i].Status.Containers {
			h := history.New()
			if h.UnmarshalBinary(packed.History) != nil {
				unread++
				continue
			}
			of[packed.Name] = h
		}
		all[htmlreport.Key(checkpoints[i].Namespace, checkpoints[i].Name)] = of
	}
	return all, unread
}
