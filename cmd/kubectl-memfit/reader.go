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
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/cluster"
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
	cmd.Flags().StringSliceVar(&r.contexts, "context", nil, contextHelp(most == allClusters))
	_ = cmd.RegisterFlagCompletionFunc("context", r.completeContexts)
	if most >= allNamespaces {
		cmd.Flags().BoolVarP(&r.everywhere, "all-namespaces", "A", false, "all namespaces")
	}
	_ = cmd.RegisterFlagCompletionFunc("namespace", r.completeNamespaces) // fails only for a flag that is not there
	return r
}

// open prepares to read from the one selected cluster, and returns the namespace; "" is all of them.
func (r *reader) open() (*cluster.Cluster, string, error) {
	sites, err := r.sites()
	if err != nil {
		return nil, "", err
	}
	if len(sites) > 1 {
		return nil, "", errors.New("this command reads one cluster: name one --context")
	}
	return sites[0].Cluster, sites[0].namespace, nil
}

// siteRecommendations is what a verb begins with: the recommendations, and where they are from.
type siteRecommendations struct {
	site
	recs []v1alpha1.MemoryRecommendation
}

// ask reads the recommendations that a verb about one cluster is about.
func (r *reader) ask(ctx context.Context) (siteRecommendations, error) {
	c, namespace, err := r.open()
	if err != nil {
		return siteRecommendations{}, err
	}
	recs, err := c.Recommendations(ctx, namespace)
	if err != nil {
		return siteRecommendations{}, err
	}
	return siteRecommendations{site{Cluster: c, namespace: namespace}, recs}, nil
}

// find returns the recommendation of a workload that the user named.
func (a siteRecommendations) find(workload string) (*v1alpha1.MemoryRecommendation, error) {
	rec, err := report.Find(a.recs, workload, place(a.namespace))
	if err != nil {
		return nil, err
	}
	return rec, nil
}

// place is a namespace in words.
func place(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return "namespace " + namespace
}
