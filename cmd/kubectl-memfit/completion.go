// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

// completionTimeout is how long a completion may take: after that, pressing Tab feels broken.
const completionTimeout = 3 * time.Second

// completeWorkloads offers the workloads that memfit governs, by kind and name, or by the name alone where that is
// what was typed. After an error it offers nothing, because a shell cannot show the error.
func (r *reader) completeWorkloads(
	cmd *cobra.Command, given []string, typed string,
) ([]string, cobra.ShellCompDirective) {
	return r.complete(cmd, typed, func(ctx context.Context, s site) []string {
		recs, _ := s.Recommendations(ctx, s.Namespace)
		var names []string
		for i := range recs {
			name := report.Typed(&recs[i])
			if typed != "" && strings.HasPrefix(recs[i].Status.Workload.Name, typed) {
				name = recs[i].Status.Workload.Name
			}
			if !slices.Contains(given, name) {
				names = append(names, cobra.CompletionWithDesc(name, recs[i].Status.Summary))
			}
		}
		return names
	})
}

func (r *reader) completeNamespaces(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return r.complete(cmd, typed, func(ctx context.Context, s site) []string { return s.Namespaces(ctx) })
}

// complete asks the cluster for words within completionTimeout, and keeps those that start with what was typed.
func (r *reader) complete(
	cmd *cobra.Command, typed string, ask func(context.Context, site) []string,
) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	sites, err := r.sites()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := slices.DeleteFunc(ask(ctx, sites[0]), func(word string) bool { return !strings.HasPrefix(word, typed) })
	return words, cobra.ShellCompDirectiveNoFileComp
}

// firstOf completes the first argument only.
func firstOf(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}

// completePods offers the pods that have a snapshot.
func (r *reader) completePods(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return r.complete(cmd, typed, func(ctx context.Context, s site) []string {
		var names []string
		_ = s.EachSnapshot(ctx, s.Namespace, func(of *v1alpha1.MemorySnapshot) {
			if name := "pod/" + of.Name; strings.HasPrefix(name, typed) {
				names = append(names, cobra.CompletionWithDesc(name, of.Status.Summary))
			}
		})
		return names // after an error, those that were read in time
	})
}

// completeRunning offers the pods that run.
func (r *reader) completeRunning(
	cmd *cobra.Command, given []string, typed string,
) ([]string, cobra.ShellCompDirective) {
	return r.complete(cmd, typed, func(ctx context.Context, s site) []string {
		var names []string
		_ = s.EachPodName(ctx, s.Namespace, func(pod *metav1.PartialObjectMetadata) {
			if strings.HasPrefix(pod.Name, typed) && !slices.Contains(given, pod.Name) {
				names = append(names, pod.Name)
			}
		})
		return names
	})
}

// completeContexts offers those of the kubeconfig, also behind a comma.
func (r *reader) completeContexts(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	config, err := r.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	before := typed[:strings.LastIndexByte(typed, ',')+1]
	var words []string
	for name := range config.Contexts {
		if word := before + name; strings.HasPrefix(word, typed) && !slices.Contains(strings.Split(before, ","), name) {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return words, cobra.ShellCompDirectiveNoFileComp
}
