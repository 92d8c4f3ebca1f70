// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/cluster"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

// verb is a command that reads a cluster: with kubectl's flags, -o, and completion.
type verb struct {
	*cobra.Command

	flags *genericclioptions.ConfigFlags
	// everywhere is -A, output -o, and order --sort-by; offered and orders are the values of these two.
	everywhere      bool
	output, order   string
	offered, orders []string

	// args, cluster and the rest of options are set when it runs.
	args    []string
	cluster *cluster.Cluster
	options listing.Options
}

// inHelp are the flags of kubectl shown in help; the others also work, but would hide memfit's.
var inHelp = []string{"namespace", "context", "kubeconfig", "as", "request-timeout"}

// reading adds kubectl's flags to a command. It takes no arguments, unless it has a check of its own.
func reading(cmd *cobra.Command) *verb {
	if cmd.Args == nil {
		cmd.Args, cmd.ValidArgsFunction = cobra.NoArgs, cobra.NoFileCompletions
	}
	v := &verb{Command: cmd, flags: genericclioptions.NewConfigFlags(true)}
	kubectl := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	v.flags.AddFlags(kubectl)
	kubectl.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(inHelp, f.Name) })
	cmd.Flags().AddFlagSet(kubectl)
	_ = cmd.RegisterFlagCompletionFunc("context", v.completeContexts) // fails only for an undefined flag
	offer := v.offering(1, namespaces)
	_ = cmd.RegisterFlagCompletionFunc(
		"namespace", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return offer(cmd, nil, typed) // the argument before may be a workload or a namespace
		},
	)
	return v
}

// readingAll adds kubectl's flags and -A to a command.
func readingAll(cmd *cobra.Command) *verb {
	v := reading(cmd)
	cmd.Flags().BoolVarP(&v.everywhere, "all-namespaces", "A", false, "all namespaces")
	return v
}

// prints adds -o with these values.
func (v *verb) prints(standard string, offered ...string) {
	v.offered = offered
	outputFlag(v.Command, &v.output, standard, offered)
}

// lists adds the flags of a verb that lists. orders are the values of --sort-by, the default first.
func (v *verb) lists(orders []string) {
	v.prints("", listing.OfList...)
	v.orders = orders
	v.Flags().BoolVar(&v.options.NoHeaders, "no-headers", false, "print only the rows of the table, for scripts")
	v.Flags().StringVar(&v.order, "sort-by", orders[0], strings.Join(orders, ", "))
	completes(v.Command, "sort-by", orders)
}

// outputFlag adds -o with completion of its values.
func outputFlag(cmd *cobra.Command, value *string, standard string, offered []string) {
	cmd.Flags().StringVarP(value, "output", "o", standard, strings.Join(offered, ", "))
	completes(cmd, "output", offered)
}

// oneOf accepts exactly one argument, and otherwise returns an error with this text.
func oneOf(text string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return errors.New(text)
		}
		return nil
	}
}

// runs sets the function that runs after the flags were checked, and returns the command.
func (v *verb) runs(run func(v *verb) error) *cobra.Command {
	v.RunE = func(_ *cobra.Command, args []string) (err error) {
		v.args = args
		if v.options.Format, err = listing.Parse(v.output, v.offered); err != nil {
			return err
		}
		if len(v.orders) > 0 && !slices.Contains(v.orders, v.order) {
			return fmt.Errorf("--sort-by %s is unknown: use %s", v.order, strings.Join(v.orders, ", "))
		}
		if v.cluster, err = v.open(); err != nil {
			return err
		}
		v.options.Namespaces = v.cluster.Namespace == ""
		v.options.Colors = listing.Colors(printers.AllowsColorOutput(v.OutOrStdout())) // a terminal, and no NO_COLOR
		return run(v)
	}
	return v.Command
}

// open prepares to read from the cluster. Nothing is read yet.
func (v *verb) open() (*cluster.Cluster, error) {
	c, err := cluster.Open(v.flags)
	if err == nil && v.everywhere {
		c.Namespace = ""
	}
	return c, err
}

func (v *verb) place() string {
	if v.cluster.Namespace == "" {
		return "all namespaces"
	}
	return "namespace " + v.cluster.Namespace
}

// workload reads the recommendation of the workload in the arguments.
func (v *verb) workload() (*v1alpha1.MemoryRecommendation, error) {
	recs, err := v.cluster.Recommendations(v.Context())
	if err != nil {
		return nil, err
	}
	return report.Find(recs, v.args[0], v.place())
}

// page prints one object: for users with write, otherwise as fields. kind is its kind, unless the value has one.
func (v *verb) page(kind string, value any, write func(w io.Writer, c listing.Colors) error) error {
	if v.options.Format.IsPage() {
		return write(v.OutOrStdout(), v.options.Colors)
	}
	return listing.Object(v.OutOrStdout(), v.options.Format, kind, value)
}

func (v *verb) warn(format string, args ...any) { v.note("warning: "+format, args...) }

// note writes a line to standard error.
func (v *verb) note(format string, args ...any) { fmt.Fprintf(v.ErrOrStderr(), format+"\n", args...) }
