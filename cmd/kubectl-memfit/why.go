// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

const whyLong = `Say on one page what happened to the memory of a pod: the last OOM kill with the minute before it and the process that died, what filled
its containers, what memfit did about its workload, and what to do next.

It reads the pod's MemorySnapshot, which the agent of its node writes (docs/agent.md), and the recommendations of its namespace. Nothing is
written to the cluster.`

const whyExample = `  kubectl memfit why pod/web-6d5f7c9b8-x2x7k -n shop`

func whyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why pod/NAME [-n NAMESPACE] [-o FORMAT]",
		Short: "Say what happened to a pod's memory: the kill, the minute before it, what filled it",
		Long:  whyLong, Example: whyExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("name one pod, as in: kubectl memfit why pod/web-6d5f7c9b8-x2x7k")
			}
			return nil
		},
	}
	r := reading(cmd, oneNamespace)
	o := pageFlags(cmd, listing.OfPage)
	cmd.ValidArgsFunction = r.completePods
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if _, _, err := o.options(cmd); err != nil {
			return err
		}
		return r.why(cmd, args[0], o)
	}
	return cmd
}

func (r *reader) why(cmd *cobra.Command, name string, o *output) error {
	pod, err := podName(name)
	if err != nil {
		return exit{exitFailed, err}
	}
	a, err := r.ask(cmd.Context())
	if err != nil {
		return err
	}
	snapshot, err := a.Snapshot(cmd.Context(), a.namespace, pod)
	if err != nil {
		return exit{exitFailed, err}
	}
	why := report.WhyOf(snapshot, report.OfPod(a.recs, pod))
	return o.page(cmd, "PodExplanation", why, why.Write)
}
