// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/inventory"
)

const topLong = `List containers with the memory they use, and what it is.

  RUNTIME      what the agent found, else what the profile declares, else with a question mark what the pod suggests
  USE          what the kernel counts against the limit, from the agent; else the working set of metrics.k8s.io
  HEAP         what the runtime's heap holds, garbage that was not collected included
  FREE         resident and holding nothing, in all parts
  NATIVE       what the allocator handed out, stacks, compiled code
  FILES        pages of programs, libraries and other files, and what processes share
  UNEXPLAINED  resident, and nobody knows what it is

HEAP to UNEXPLAINED add up to what is resident. They need memfit's agent, at tier See; below the table stands what is missing, and
why. kubectl memfit map draws one pod. Nothing is written to the cluster.`

const topExample = `  # Who holds on to free memory?
  kubectl memfit top -A --sort free

  # Containers above 90 % of their limit
  kubectl memfit top -A --sort share`

func topCommand() *cobra.Command {
	var output, order string
	cmd := &cobra.Command{
		Use:   "top [POD...] [-n NAMESPACE | -A] [--sort " + strings.Join(inventory.Orders, "|") + "] [-o json|yaml]",
		Short: "List containers by the memory they use, and what it is",
		Long:  topLong, Example: topExample, Args: cobra.ArbitraryArgs,
	}
	r := reading(cmd, true)
	r.noHeadersFlag(cmd)
	outputFlag(cmd, &output, "", "json", "yaml")
	cmd.Flags().StringVar(&order, "sort", inventory.Orders[0], strings.Join(inventory.Orders, ", "))
	_ = cmd.RegisterFlagCompletionFunc( // fails only for a flag that is not there
		"sort", cobra.FixedCompletions(inventory.Orders, cobra.ShellCompDirectiveNoFileComp),
	)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := known(output, "", "json", "yaml"); err != nil {
			return err
		}
		if !slices.Contains(inventory.Orders, order) {
			return exit{exitFailed, fmt.Errorf("--sort %s is not known: use %s", order, strings.Join(inventory.Orders, ", "))}
		}
		return r.top(cmd, args, order, output)
	}
	return cmd
}

func (r *reader) top(cmd *cobra.Command, names []string, order, output string) error {
	in, namespace, err := r.inventory(cmd)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		if in.Pods, err = chosen(in.Pods, names, place(namespace)); err != nil {
			return exit{exitFailed, err}
		}
	}
	all := inventory.Containers(in)
	inventory.Sort(all, order)
	if output != "" {
		return encode(cmd.OutOrStdout(), output, map[string]any{"containers": all})
	}
	if len(all) == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "No pod runs in %s\n", place(namespace))
		return nil
	}
	return inventory.WriteTop(cmd.OutOrStdout(), all, inventory.Table{Namespaces: namespace == "", NoHeaders: r.noHeaders})
}
