// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// reader is what the verbs that read a cluster have in common: kubectl's own flags, -o, and completion.
type reader struct {
	cmd     *cobra.Command
	most    scope
	flags   *genericclioptions.ConfigFlags
	kubectl *pflag.FlagSet
	// contexts are those of --context; none: that of the kubeconfig.
	contexts []string
	// everywhere is -A.
	everywhere bool
	output     output
}

// inHelp are the flags of kubectl that help shows; the others work as well, and would bury ours.
var inHelp = []string{"namespace", "context", "kubeconfig", "as", "request-timeout"}

// scope is how many namespaces and clusters a verb reads.
type scope int

const (
	oneNamespace  scope = iota
	allNamespaces       // with -A
	allClusters         // the same, and with several --context
)

// reading gives a verb kubectl's flags, and those for its scope.
func reading(cmd *cobra.Command, most scope) *reader {
	r := &reader{
		cmd: cmd, most: most, flags: genericclioptions.NewConfigFlags(true),
		kubectl: pflag.NewFlagSet("kubectl", pflag.ContinueOnError),
	}
	r.flags.Context = nil // ours takes several
	r.flags.AddFlags(r.kubectl)
	r.kubectl.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(inHelp, f.Name) })
	cmd.Flags().AddFlagSet(r.kubectl)
	context := "the kubeconfig context to use"
	if most == allClusters {
		context += "; several (repeated, or with commas between them) add a column CLUSTER"
	}
	cmd.Flags().StringSliceVar(&r.contexts, "context", nil, context)
	_ = cmd.RegisterFlagCompletionFunc("context", r.completeContexts)
	if most >= allNamespaces {
		cmd.Flags().BoolVarP(&r.everywhere, "all-namespaces", "A", false, "all namespaces")
	}
	offer := r.offering(namespaces)
	_ = cmd.RegisterFlagCompletionFunc( // fails only for a flag that is not there
		"namespace", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return offer(cmd, nil, typed) // a namespace may have the name of the workload that is given
		},
	)
	return r
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
