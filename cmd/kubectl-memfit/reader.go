// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

// reader is what the verbs that read a cluster have in common: kubectl's own flags, and completion.
type reader struct {
	flags   *genericclioptions.ConfigFlags
	kubectl *pflag.FlagSet
	// contexts are those of --context; none: that of the kubeconfig.
	contexts []string
	// everywhere is -A.
	everywhere bool
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
		flags: genericclioptions.NewConfigFlags(true), kubectl: pflag.NewFlagSet("kubectl", pflag.ContinueOnError),
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
	_ = cmd.RegisterFlagCompletionFunc("namespace", r.completeNamespaces) // fails only for a flag that is not there
	return r
}

// one prepares to read from the one selected cluster.
func (r *reader) one() (site, error) {
	sites, err := r.sites()
	if err != nil {
		return site{}, err
	}
	if len(sites) > 1 {
		return site{}, errors.New("this command reads one cluster: name one --context")
	}
	return sites[0], nil
}

// view is what memfit knows of the workloads of a site.
type view struct {
	site
	recs     []v1alpha1.MemoryRecommendation
	profiles []report.Profile
	// unread is why profiles are missing; nil: none is.
	unread error
}

// view reads what a verb about one cluster is about.
func (r *reader) view(ctx context.Context) (view, error) {
	s, err := r.one()
	if err != nil {
		return view{}, err
	}
	return s.view(ctx)
}

func (s site) view(ctx context.Context) (view, error) {
	recs, err := s.Recommendations(ctx, s.Namespace)
	if err != nil {
		return view{}, err
	}
	v := view{site: s, recs: recs}
	v.profiles, v.unread = s.Profiles(ctx, s.Namespace)
	return v, nil
}

// unknownProfile reports whether a workload is governed by a profile that could not be read.
func (v view) unknownProfile() bool {
	return v.unread != nil && slices.ContainsFunc(
		v.recs, func(rec v1alpha1.MemoryRecommendation) bool { return report.Governing(&rec, v.profiles) == nil },
	)
}

// find returns the recommendation of a workload that the user named.
func (v view) find(workload string) (*v1alpha1.MemoryRecommendation, error) {
	return report.Find(v.recs, workload, place(v.Namespace))
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
