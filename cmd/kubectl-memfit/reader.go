// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/cluster"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

// reader is what the verbs that read a cluster have in common: kubectl's own flags, and completion.
type reader struct {
	flags *genericclioptions.ConfigFlags
	// everywhere is -A.
	everywhere bool
	// noHeaders is --no-headers.
	noHeaders bool
}

// inHelp are the flags of kubectl that help shows; the others work as well, and would bury ours.
var inHelp = []string{"namespace", "context", "kubeconfig", "as", "request-timeout"}

// reading gives a verb kubectl's flags, and -A if it can be about all namespaces.
func reading(cmd *cobra.Command, everywhere bool) *reader {
	r := &reader{flags: genericclioptions.NewConfigFlags(true)}
	r.flags.AddFlags(cmd.Flags())
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(inHelp, f.Name) })
	if everywhere {
		cmd.Flags().BoolVarP(&r.everywhere, "all-namespaces", "A", false, "all namespaces")
	}
	_ = cmd.RegisterFlagCompletionFunc("namespace", r.completeNamespaces) // fails only for a flag that is not there
	return r
}

// open prepares to read, and says which namespace is asked for; "" is all of them.
func (r *reader) open() (*cluster.Cluster, string, error) {
	c, err := cluster.Open(r.flags)
	if err != nil {
		return nil, "", exit{exitFailed, err}
	}
	if r.everywhere {
		return c, "", nil
	}
	return c, c.Namespace, nil
}

// answer is what a verb begins with: the recommendations, and where they are from.
type answer struct {
	*cluster.Cluster
	// namespace is "" for all of them.
	namespace string
	recs      []v1alpha1.MemoryRecommendation
}

// ask reads the recommendations that a verb is about.
func (r *reader) ask(ctx context.Context) (answer, error) {
	c, namespace, err := r.open()
	if err != nil {
		return answer{}, err
	}
	recs, err := c.Recommendations(ctx, namespace)
	if err != nil {
		return answer{}, exit{exitFailed, err}
	}
	return answer{c, namespace, recs}, nil
}

// find is the recommendation of a workload that somebody named.
func (a answer) find(workload string) (*v1alpha1.MemoryRecommendation, error) {
	rec, err := report.Find(a.recs, workload, place(a.namespace))
	if err != nil {
		return nil, exit{exitFailed, err}
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

// completionTimeout is how long somebody who pressed Tab waits before it feels broken.
const completionTimeout = 3 * time.Second

// completeWorkloads offers the workloads that memfit knows, by kind and name, and by the name alone to those who began
// with that. An error offers nothing: there is nowhere to show it.
func (r *reader) completeWorkloads(
	cmd *cobra.Command, given []string, typed string,
) ([]string, cobra.ShellCompDirective) {
	return r.complete(cmd, typed, func(ctx context.Context, c *cluster.Cluster, namespace string) []string {
		recs, _ := c.Recommendations(ctx, namespace)
		var names []string
		for i := range recs {
			name := report.Typed(&recs[i])
			if typed != "" && strings.HasPrefix(recs[i].Spec.Workload.Name, typed) {
				name = recs[i].Spec.Workload.Name
			}
			if !slices.Contains(given, name) {
				names = append(names, cobra.CompletionWithDesc(name, recs[i].Status.Summary))
			}
		}
		return names
	})
}

func (r *reader) completeNamespaces(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return r.complete(cmd, typed, func(ctx context.Context, c *cluster.Cluster, _ string) []string {
		names, _ := c.Names(ctx)
		return names
	})
}

// complete asks the cluster for words, as long as somebody who pressed Tab waits, and keeps those that begin as typed.
func (r *reader) complete(
	cmd *cobra.Command, typed string, ask func(context.Context, *cluster.Cluster, string) []string,
) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	c, namespace, err := r.open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := slices.DeleteFunc(ask(ctx, c, namespace), func(word string) bool { return !strings.HasPrefix(word, typed) })
	return words, cobra.ShellCompDirectiveNoFileComp
}

// encode writes a value for machines.
func encode(w io.Writer, format string, value any) error {
	var out []byte
	var err error
	if format == "yaml" {
		out, err = yaml.Marshal(value)
	} else {
		out, err = json.MarshalIndent(value, "", "  ")
		out = append(out, '\n')
	}
	if err != nil {
		return exit{exitFailed, fmt.Errorf("writing %s: %w", format, err)}
	}
	_, err = w.Write(out)
	return err
}
