// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/node"
	"github.com/memfit/memfit/hack/lab/internal/progress"
)

func runStatus(ctx context.Context, l layout.Layout, args []string) error {
	if err := flag.NewFlagSet("status", flag.ContinueOnError).Parse(args); err != nil {
		return err
	}
	status, err := (&node.Node{Layout: l}).Status(ctx)
	if err != nil {
		return err
	}
	printStatus(status)
	return nil
}

func printStatus(s node.Status) {
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	defer w.Flush()
	if len(s.Processes) == 0 {
		fmt.Fprintln(w, "No lab is running: `make lab-up` starts one.")
		return
	}
	fmt.Fprintln(w, "NAME\tPID\tSTATE\tUPTIME")
	for _, p := range s.Processes {
		state, uptime := "running", progress.Round(time.Since(p.Started)).String()
		if !p.Alive() {
			state, uptime = "DEAD", "-"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", p.Name, p.PID, state, uptime)
	}
	health := "healthy"
	if s.Problem != "" {
		health = "UNHEALTHY: " + s.Problem + ". `make lab-up` repairs it"
	}
	fmt.Fprintf(
		w, "\nLab\t%s\nKubernetes\t%s\nAPI server\t%s\nKubeconfig\t%s\nLogs\t%s\n", health,
		cmp.Or(s.Kubernetes, "unknown: the lab has not started completely"), s.APIServer, s.Kubeconfig, s.Logs,
	)
}

// running returns the node of the running lab, with the directory of its programs, or an error if no lab runs.
func running(l layout.Layout) (*node.Node, error) {
	n := &node.Node{Layout: l}
	return n, n.Attach()
}
