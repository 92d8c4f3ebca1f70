// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
)

// output is how a verb prints: the one place for -o, --no-headers and --sort-by.
type output struct {
	value     string
	offered   []string
	noHeaders bool
	sortBy    string
	orders    []string
}

// prints gives a verb -o with the values that it offers.
func (r *reader) prints(standard string, offered ...string) {
	r.output.offered = offered
	outputFlag(r.cmd, &r.output.value, standard, offered...)
}

// lists makes cmd a verb that lists. orders are words for --sort-by, the usual one first.
func (r *reader) lists(orders []string) {
	r.prints("", listing.OfList...)
	o := &r.output
	o.orders = orders
	r.cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "print nothing but the lines of the table, for scripts")
	r.cmd.Flags().StringVar(&o.sortBy, "sort-by", orders[0], strings.Join(orders, ", "))
	completes(r.cmd, "sort-by", orders)
}

// outputFlag adds -o with its values, which complete.
func outputFlag(cmd *cobra.Command, value *string, standard string, offered ...string) {
	cmd.Flags().StringVarP(value, "output", "o", standard, strings.Join(offered, ", "))
	completes(cmd, "output", offered)
}

// completes offers words for a flag. After a word that ends in "=" no space is added.
func completes(cmd *cobra.Command, flag string, words []string) {
	// fails only for a flag that is not there
	_ = cmd.RegisterFlagCompletionFunc(
		flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			fits := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !strings.HasPrefix(word, typed) })
			directive := cobra.ShellCompDirectiveNoFileComp
			if len(fits) > 0 && !slices.ContainsFunc(fits, func(word string) bool { return !strings.HasSuffix(word, "=") }) {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
			return fits, directive
		},
	)
}

// options validates the flags before anything is read.
func (o *output) options(cmd *cobra.Command) (options listing.Options, err error) {
	if options.Format, err = listing.Parse(o.value, o.offered); err != nil {
		return options, err
	}
	if len(o.orders) > 0 && !slices.Contains(o.orders, o.sortBy) {
		return options, fmt.Errorf("--sort-by %s is not known: use %s", o.sortBy, strings.Join(o.orders, ", "))
	}
	options.NoHeaders, options.Colors = o.noHeaders, colors(cmd)
	return options, nil
}

// colors are for terminals that have them and people who want them.
func colors(cmd *cobra.Command) listing.Colors {
	return listing.Colors(printers.AllowsColorOutput(cmd.OutOrStdout()))
}
