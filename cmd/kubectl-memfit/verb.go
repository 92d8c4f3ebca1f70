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

// verb is a command that reads a cluster. It has kubectl's flags, -o and completion.
type verb struct {
	*cobra.Command

	flags *genericclioptions.ConfigFlags
	// outputs and orders are the valid values of output (-o) and order (--sort-by).
	output, order   string
	outputs, orders []string
	allNamespaces   bool // -A

	// args, cluster and options are set when the command runs, except options.NoHeaders, which is a flag.
	args    []string
	cluster *cluster.Cluster
	options listing.Options
}

// inHelp lists kubectl's flags that the help shows. The other flags also work, but would crowd the help.
var inHelp = []string{"namespace", "context", "kubeconfig", "as", "request-timeout"}

// newVerb adds kubectl's flags to a command. The command takes no arguments unless cmd.Args is set.
func newVerb(cmd *cobra.Command) *verb {
	if cmd.Args == nil {
		cmd.Args, cmd.ValidArgsFunction = cobra.NoArgs, cobra.NoFileCompletions
	}
	v := &verb{Command: cmd, flags: genericclioptions.NewConfigFlags(true)}
	kubectl := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	v.flags.AddFlags(kubectl)
	kubectl.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(inHelp, f.Name) })
	cmd.Flags().AddFlagSet(kubectl)
	_ = cmd.RegisterFlagCompletionFunc("context", v.completeContexts) // fails only for an undefined flag
	complete := v.completeArgs(1, namespaces)
	_ = cmd.RegisterFlagCompletionFunc(
		"namespace", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return complete(cmd, nil, typed) // the arguments of the command are not namespaces
		},
	)
	return v
}

// newVerbAllNamespaces adds kubectl's flags and -A to a command.
func newVerbAllNamespaces(cmd *cobra.Command) *verb {
	v := newVerb(cmd)
	cmd.Flags().BoolVarP(&v.allNamespaces, "all-namespaces", "A", false, "all namespaces")
	return v
}

// addOutput adds -o with a default and its valid values.
func (v *verb) addOutput(standard string, outputs ...string) {
	v.outputs = outputs
	outputFlag(v.Command, &v.output, standard, outputs)
}

// addListFlags adds the flags of a verb that prints a list. orders are the values of --sort-by, the default first.
func (v *verb) addListFlags(orders []string) {
	v.addOutput("", listing.OfList...)
	v.orders = orders
	v.Flags().BoolVar(&v.options.NoHeaders, "no-headers", false, "print only the rows of the table, for scripts")
	v.Flags().StringVar(&v.order, "sort-by", orders[0], strings.Join(orders, ", "))
	completeFlag(v.Command, "sort-by", orders)
}

// outputFlag adds -o with completion of its values.
func outputFlag(cmd *cobra.Command, value *string, standard string, outputs []string) {
	cmd.Flags().StringVarP(value, "output", "o", standard, strings.Join(outputs, ", "))
	completeFlag(cmd, "output", outputs)
}

// exactlyOne accepts exactly one argument, and otherwise returns an error with this text.
func exactlyOne(text string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return errors.New(text)
		}
		return nil
	}
}

// withRun sets the function that runs after the flags have been checked, and returns the command.
func (v *verb) withRun(run func(v *verb) error) *cobra.Command {
	v.RunE = func(_ *cobra.Command, args []string) (err error) {
		v.args = args
		if v.options.Format, err = listing.Parse(v.output, v.outputs); err != nil {
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

// open returns a client of the cluster that the flags name. It sends no request.
func (v *verb) open() (*cluster.Cluster, error) {
	c, err := cluster.Open(v.flags)
	if err == nil && v.allNamespaces {
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

// recommendation reads the recommendation of the workload that the first argument names.
func (v *verb) recommendation() (*v1alpha1.MemoryRecommendation, error) {
	recs, err := v.cluster.Recommendations(v.Context())
	if err != nil {
		return nil, err
	}
	return report.Find(recs, v.args[0], v.place())
}

// page prints a page with write, or with -o the value as an object. kind is its kind, unless the value has a kind.
func (v *verb) page(kind string, value any, write func(w io.Writer, c listing.Colors) error) error {
	if v.options.Format.IsPage() {
		return write(v.OutOrStdout(), v.options.Colors)
	}
	return listing.Object(v.OutOrStdout(), v.options.Format, kind, value)
}

func (v *verb) warn(format string, args ...any) { v.note("warning: "+format, args...) }

// note writes a line to standard error.
func (v *verb) note(format string, args ...any) { fmt.Fprintf(v.ErrOrStderr(), format+"\n", args...) }
