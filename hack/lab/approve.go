// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memfit/memfit/hack/lab/internal/component"
	"github.com/memfit/memfit/hack/lab/internal/kubeletcert"
	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/progress"
	"github.com/memfit/memfit/hack/lab/internal/run"
)

// approveWithin: a kubelet asks within seconds of its start, and the controller manager signs at once.
const approveWithin = 2 * time.Minute

func runApproveKubelets(ctx context.Context, l layout.Layout, args []string) error {
	if err := flag.NewFlagSet("approve-kubelets", flag.ContinueOnError).Parse(args); err != nil {
		return err
	}
	return approveKubelets(ctx, l, chooseMode(os.Getenv, l).kubeconfig(os.Getenv, l))
}

// approveKubelets approves what the cluster's kubelets ask for, and waits until there is a certificate for every node.
func approveKubelets(ctx context.Context, l layout.Layout, kubeconfig string) error {
	kubernetes, err := component.FindKubernetes(os.Getenv("LAB_KUBERNETES"))
	if err != nil {
		return err
	}
	selected, _ := component.Select(component.All(kubernetes), []string{"kubectl"})
	bin, err := buildBinaries(ctx, l, kubernetes, selected, progress.New(os.Stderr, component.Count(selected)))
	if err != nil {
		return err
	}
	k := kubectl{path: filepath.Join(bin, "kubectl"), kubeconfig: kubeconfig}

	ctx, cancel := context.WithTimeout(ctx, approveWithin)
	defer cancel()
	for {
		waiting, err := k.approve(ctx)
		if err == nil && len(waiting) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			if len(waiting) > 0 {
				err = errors.Join(err, fmt.Errorf("no serving certificate was asked for, or signed, within %s for node %s: does "+
					"its kubelet have serverTLSBootstrap: true?", approveWithin, strings.Join(waiting, ", ")))
			}
			return err
		case <-time.After(time.Second):
		}
	}
}

type kubectl struct{ path, kubeconfig string }

// approve approves what may be and returns the nodes without a certificate. What must not be approved is an error.
func (k kubectl) approve(ctx context.Context) (waiting []string, err error) {
	list, err := k.run(ctx, "get", "nodes", "-o", "json")
	if err != nil {
		return nil, err
	}
	nodes, err := kubeletcert.ParseNodes(list)
	if err != nil {
		return nil, err
	}
	if list, err = k.run(ctx, "get", "certificatesigningrequests", "-o", "json"); err != nil {
		return nil, err
	}
	requests, err := kubeletcert.ParseRequests(list)
	if err != nil {
		return nil, err
	}
	var refused []error
	for _, r := range requests {
		if !r.Pending {
			continue
		}
		if err := kubeletcert.Check(r, nodes); err != nil {
			refused = append(refused, fmt.Errorf("not approved: %w", err))
			continue
		}
		if _, err := k.run(ctx, "certificate", "approve", r.Name); err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "Approved %s, the serving certificate of node %s\n", r.Name, r.Node)
	}
	for _, n := range nodes {
		issued := func(r kubeletcert.Request) bool { return r.Node == n.Name && r.Issued }
		if !slices.ContainsFunc(requests, issued) {
			waiting = append(waiting, n.Name)
		}
	}
	return waiting, errors.Join(refused...)
}

func (k kubectl) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, k.path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig)
	return run.Output(cmd)
}
