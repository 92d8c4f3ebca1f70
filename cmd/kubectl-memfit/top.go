// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/inventory"
)

const topLong = `List containers with the memory they use, and its parts.

  RUNTIME      from the agent, else from the profile, else suggested by the pod's spec (with a question mark)
  USE          demand (memory the kernel cannot reclaim) from the agent, else the working set from metrics.k8s.io
  HEAP         the runtime's heap, including garbage
  FREE         resident but unused, in all parts
  NATIVE       memory from the allocator, stacks, compiled code
  FILES        pages of programs, libraries and other files, and shared memory
  UNEXPLAINED  resident, of unknown use

The columns HEAP to UNEXPLAINED add up to resident memory. They need memfit's agent at tier See; notes below the table
list what is missing and why. kubectl memfit map draws one pod. Nothing is written to the cluster.`

const topExample = `  # Containers with the most free memory first
  kubectl memfit top -A --sort-by free

  # Containers closest to their limit first
  kubectl memfit top -A --sort-by share`

func topCommand() *cobra.Command {
	v := newVerbAllNamespaces(&cobra.Command{
		Use:   "top [-n NAMESPACE | -A] [--sort-by " + strings.Join(inventory.Orders, "|") + "] [-o FORMAT]",
		Short: "List containers by the memory they use, and its parts",
		Long:  topLong, Example: topExample,
	})
	v.addListFlags(inventory.Orders)
	return v.withRun(top)
}

func top(v *verb) error {
	in, err := v.inventory()
	if err != nil {
		return err
	}
	all := in.Containers()
	inventory.Sort(all, v.order)
	return inventory.WriteTop(v.OutOrStdout(), all, v.options)
}
