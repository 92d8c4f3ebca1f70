// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/cluster"
)

// reader is what the verbs that read a cluster have in common: kubectl's own flags, -o, and completion.
type reader struct {
	cmd   *cobra.Command
	flags *genericclioptions.ConfigFlags
	// everywhere is -A.
	everywhere bool
	output     output
}

// inHelp are the flags of kubectl that help shows; the others work as well, and would bury ours.
var inHelp = []string{"namespace", "context", "kubeconfig", "as", "request-timeout"}

// reading gives a verb kubectl's flags.
func reading(cmd *cobra.Command) *reader {
	r := &reader{cmd: cmd, flags: genericclioptions.NewConfigFlags(true)}
	kubectl := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	r.flags.AddFlags(kubectl)
	kubectl.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(inHelp, f.Name) })
	cmd.Flags().AddFlagSet(kubectl)
	_ = cmd.RegisterFlagCompletionFunc("context", r.completeContexts)
	offer := r.offering(namespaces)
	_ = cmd.RegisterFlagCompletionFunc( // fails only for a flag that is not there
		"namespace", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return offer(cmd, nil, typed) // a namespace may have the name of the workload that is given
		},
	)
	return r
}

// readingAll gives a verb kubectl's flags, and -A.
func readingAll(cmd *cobra.Command) *reader {
	r := reading(cmd)
	cmd.Flags().BoolVarP(&r.everywhere, "all-namespaces", "A", false, "all namespaces")
	return r
}

// open prepares to read from the cluster. Nothing is read yet.
func (r *reader) open() (*cluster.Cluster, error) {
	c, err := cluster.Open(r.flags)
	if err == nil && r.everywhere {
		c.Namespace = ""
	}
	return c, err
}

// oneOf accepts one argument; with fewer or more, the error has this text.
func oneOf(text string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return errors.New(text)
		}
		return nil
	}
}

// place is a namespace in words.
func place(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return "namespace " + namespace
}
