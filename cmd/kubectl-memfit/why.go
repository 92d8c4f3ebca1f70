// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

const whyLong = `Say on one page what happened to the memory of a pod: the last OOM kill with the minute before it and the process that died, what filled
its containers, what memfit did about its workload, and what to do next.

It reads the pod's MemorySnapshot, which the agent of its node writes (docs/agent.md), and the recommendations of its namespace. Nothing is
written to the cluster.`

const whyExample = `  kubectl memfit why pod/web-6d5f7c9b8-x2x7k -n shop`

func whyCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "why pod/NAME [-n NAMESPACE] [-o json|yaml]",
		Short: "Say what happened to a pod's memory: the kill, the minute before it, what filled it",
		Long:  whyLong, Example: whyExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("name one pod, as in: kubectl memfit why pod/web-6d5f7c9b8-x2x7k")
			}
			return nil
		},
	}
	r := reading(cmd, false)
	outputFlag(cmd, &output, "", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := known(output, "", "json", "yaml"); err != nil {
			return err
		}
		return r.why(cmd, args[0], output)
	}
	return cmd
}

// podNamed is the name in pod/NAME, pods/NAME, po/NAME or NAME.
func podNamed(asked string) (string, error) {
	kind, name, typed := strings.Cut(asked, "/")
	if !typed {
		return asked, nil
	}
	if kind == "pod" || kind == "pods" || kind == "po" {
		return name, nil
	}
	return "", fmt.Errorf("%q is no pod; name one, as in pod/web-6d5f7c9b8-x2x7k", asked)
}

func (r *reader) why(cmd *cobra.Command, name, output string) error {
	pod, err := podNamed(name)
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
	if output != "" {
		return encode(cmd.OutOrStdout(), output, why)
	}
	return why.Write(cmd.OutOrStdout(), colours(cmd))
}
