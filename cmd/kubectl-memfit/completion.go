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

// completionTimeout limits how long the shell waits for a completion.
const completionTimeout = 3 * time.Second

// lister calls add with the words that may complete typed, each with a description or "".
type lister func(ctx context.Context, c *cluster.Cluster, typed string, add func(word, description string))

// completeArgs completes up to maxArgs arguments with the words of list. It ignores errors, which a shell cannot show.
func (v *verb) completeArgs(maxArgs int, list lister) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= maxArgs {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		c, err := v.open()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		list(ctx, c, typed, func(word, description string) {
			if strings.HasPrefix(word, typed) && !slices.Contains(args, word) {
				words = append(words, strings.TrimSuffix(cobra.CompletionWithDesc(word, description), "\t"))
			}
		})
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// workloads lists the governed workloads as "deployment/web", or as "web" if that begins with what the user typed.
func workloads(ctx context.Context, c *cluster.Cluster, typed string, add func(word, description string)) {
	recs, _ := c.Recommendations(ctx)
	for i := range recs {
		name := report.Typed(recs[i].Name, &recs[i].Status)
		if typed != "" && strings.HasPrefix(recs[i].Status.Workload.Name, typed) {
			name = recs[i].Status.Workload.Name
		}
		add(name, recs[i].Status.Summary)
	}
}

func namespaces(ctx context.Context, c *cluster.Cluster, _ string, add func(word, description string)) {
	for _, name := range c.Namespaces(ctx) {
		add(name, "")
	}
}

// inspectedPods lists the pods that have a snapshot.
func inspectedPods(ctx context.Context, c *cluster.Cluster, _ string, add func(word, description string)) {
	_ = c.EachSnapshot(ctx, func(s *v1alpha1.MemorySnapshot) { add("pod/"+s.Name, s.Status.Summary) })
}

// completeContexts completes the name of a context with those of the kubeconfig.
func (v *verb) completeContexts(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	config, err := v.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := slices.Sorted(maps.Keys(config.Contexts))
	return slices.DeleteFunc(words, func(name string) bool { return !strings.HasPrefix(name, typed) }),
		cobra.ShellCompDirectiveNoFileComp
}

// completeFlag completes the value of a flag with words. If all matches end in "=", the shell adds no space.
func completeFlag(cmd *cobra.Command, flag string, words []string) {
	// fails only for an undefined flag
	_ = cmd.RegisterFlagCompletionFunc(
		flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			matches := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !strings.HasPrefix(word, typed) })
			directive := cobra.ShellCompDirectiveNoFileComp
			complete := func(word string) bool { return !strings.HasSuffix(word, "=") }
			if len(matches) > 0 && !slices.ContainsFunc(matches, complete) {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
			return matches, directive
		},
	)
}
