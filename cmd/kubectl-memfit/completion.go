// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/cluster"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

// completionTimeout bounds a completion: after that, Tab seems broken.
const completionTimeout = 3 * time.Second

// offering completes up to most arguments with the words that ask returns in time; a shell cannot show an error.
func (v *verb) offering(
	most int, ask func(ctx context.Context, s *cluster.Cluster, typed string, offer func(word, about string)),
) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(given) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		s, err := v.open()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		ask(ctx, s, typed, func(word, about string) {
			if strings.HasPrefix(word, typed) && !slices.Contains(given, word) {
				words = append(words, strings.TrimSuffix(cobra.CompletionWithDesc(word, about), "\t"))
			}
		})
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// workloads returns the governed workloads by kind and name, or by name alone if that is what the user typed.
func workloads(ctx context.Context, s *cluster.Cluster, typed string, offer func(word, about string)) {
	recs, _ := s.Recommendations(ctx)
	for i := range recs {
		name := report.Typed(recs[i].Name, &recs[i].Status)
		if typed != "" && strings.HasPrefix(recs[i].Status.Workload.Name, typed) {
			name = recs[i].Status.Workload.Name
		}
		offer(name, recs[i].Status.Summary)
	}
}

func namespaces(ctx context.Context, s *cluster.Cluster, _ string, offer func(word, about string)) {
	for _, name := range s.Namespaces(ctx) {
		offer(name, "")
	}
}

// inspected returns the pods that have a snapshot.
func inspected(ctx context.Context, s *cluster.Cluster, _ string, offer func(word, about string)) {
	_ = s.EachSnapshot(ctx, func(of *v1alpha1.MemorySnapshot) { offer("pod/"+of.Name, of.Status.Summary) })
}

// completeContexts offers the contexts of the kubeconfig.
func (v *verb) completeContexts(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	config, err := v.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := slices.Sorted(maps.Keys(config.Contexts))
	return slices.DeleteFunc(words, func(name string) bool { return !strings.HasPrefix(name, typed) }),
		cobra.ShellCompDirectiveNoFileComp
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
