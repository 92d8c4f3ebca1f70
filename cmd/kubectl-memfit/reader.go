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

// reader holds the common parts of verbs that read a cluster: kubectl's flags, -o, and completion.
type reader struct {
	cmd   *cobra.Command
	flags *genericclioptions.ConfigFlags
	// everywhere is -A.
	everywhere bool
	output     output
}

// inHelp are the flags of kubectl shown in help; the others also work, but would hide memfit's.
var inHelp = []string{"namespace", "context", "kubeconfig", "as", "request-timeout"}

// reading adds kubectl's flags to a verb.
func reading(cmd *cobra.Command) *reader {
	r := &reader{cmd: cmd, flags: genericclioptions.NewConfigFlags(true)}
	kubectl := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	r.flags.AddFlags(kubectl)
	kubectl.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(inHelp, f.Name) })
	cmd.Flags().AddFlagSet(kubectl)
	_ = cmd.RegisterFlagCompletionFunc("context", r.completeContexts)
	offer := r.offering(namespaces)
	_ = cmd.RegisterFlagCompletionFunc( // fails only for an undefined flag
		"namespace", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return offer(cmd, nil, typed) // the argument before may be a workload or a namespace
		},
	)
	return r
}

// readingAll adds kubectl's flags and -A to a verb.
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

// oneOf accepts exactly one argument, and otherwise returns an error with this text.
func oneOf(text string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return errors.New(text)
		}
		return nil
	}
}

// place describes a namespace.
func place(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return "namespace " + namespace
}
