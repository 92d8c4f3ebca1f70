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

// output holds the flags -o, --no-headers and --sort-by of a verb.
type output struct {
	value     string
	offered   []string
	noHeaders bool
	sortBy    string
	orders    []string
}

// prints adds -o with these values to a verb.
func (r *reader) prints(standard string, offered ...string) {
	r.output.offered = offered
	outputFlag(r.cmd, &r.output.value, standard, offered...)
}

// lists makes cmd a verb that lists. orders are the values of --sort-by, the default first.
func (r *reader) lists(orders []string) {
	r.prints("", listing.OfList...)
	o := &r.output
	o.orders = orders
	r.cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "print only the rows of the table, for scripts")
	r.cmd.Flags().StringVar(&o.sortBy, "sort-by", orders[0], strings.Join(orders, ", "))
	completes(r.cmd, "sort-by", orders)
}

// outputFlag adds -o with completion of its values.
func outputFlag(cmd *cobra.Command, value *string, standard string, offered ...string) {
	cmd.Flags().StringVarP(value, "output", "o", standard, strings.Join(offered, ", "))
	completes(cmd, "output", offered)
}

// completes adds completion to a flag. It adds no space after a word that ends in "=".
func completes(cmd *cobra.Command, flag string, words []string) {
	// fails only for an undefined flag
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
		return options, fmt.Errorf("--sort-by %s is unknown: use %s", o.sortBy, strings.Join(o.orders, ", "))
	}
	options.NoHeaders, options.Colors = o.noHeaders, colors(cmd)
	return options, nil
}

// colors reports whether the terminal supports colors and NO_COLOR is unset.
func colors(cmd *cobra.Command) listing.Colors {
	return listing.Colors(printers.AllowsColorOutput(cmd.OutOrStdout()))
}
