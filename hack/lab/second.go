// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/node"
	"github.com/memfit/memfit/hack/lab/internal/progress"
	"github.com/memfit/memfit/hack/lab/internal/uml"
)

// second is the node that $LAB_NODE adds to the lab.
type second struct {
	variants uml.Variants
	builder  uml.Builder
	want     node.Cgroup2
}

// secondNode reads the requested second node from the environment. It returns nil if none is requested.
func secondNode(getenv func(string) string) (*second, error) {
	variants, err := uml.ParseVariants(getenv("LAB_NODE_WITH"))
	if err != nil {
		return nil, fmt.Errorf("NODE_WITH: %w", err)
	}
	switch name := getenv("LAB_NODE"); {
	case name == "cgroup2":
		return &second{variants: variants}, nil
	case name != "":
		return nil, fmt.Errorf("NODE=%s: unknown kind of node; the lab can add cgroup2", name)
	case variants != uml.Variants{}:
		return nil, errors.New("NODE_WITH applies to the node with cgroup v2 only: add NODE=cgroup2")
	default:
		return nil, nil
	}
}

// build builds the kernel unless the cache has it.
func (s *second) build(ctx context.Context, n *node.Node, report *progress.Reporter) error {
	s.builder = uml.Builder{Store: n.Layout.Kernels(), Report: report}
	kernel, err := s.builder.Kernel(ctx)
	s.want = node.Cgroup2{Kernel: kernel, Bin: n.Bin, Variants: s.variants, Images: n.Images}
	return err
}

// upSecond starts or updates the second node that s requests. If s is nil, a running second node is kept, because
// another user may need it, and the remains of a killed one are removed.
func upSecond(ctx context.Context, n *node.Node, s *second, report *progress.Reporter) error {
	switch {
	case s == nil && n.Cgroup2Runs():
		report.Note("The node %s is kept", layout.Cgroup2Name)
		return nil
	case s == nil:
		return n.RemoveCgroup2(ctx)
	}
	reason := n.Cgroup2Reusable(ctx, s.want)
	if reason == nil {
		report.Note("The node %s is already running", layout.Cgroup2Name)
		return n.RefreshCgroup2(ctx, s.want)
	}
	if n.Cgroup2Requested() {
		report.Note("Replacing the node %s: %v", layout.Cgroup2Name, reason)
	}
	if err := n.StartCgroup2(ctx, &s.builder, s.want, report); err != nil {
		return fmt.Errorf("%w\nthe lab itself is running; `make lab-up NODE=cgroup2` tries again", err)
	}
	report.Note("The node %s is ready, with variants: %s", layout.Cgroup2Name, cmp.Or(s.variants.String(), "none"))
	return nil
}

// runNodeExec runs a command on the node with cgroup v2.
func runNodeExec(ctx context.Context, l layout.Layout, args []string) error {
	if len(args) == 0 {
		return errors.New("no command to run: lab node-exec -- COMMAND")
	}
	n, err := running(l)
	if err != nil {
		return err
	}
	if !n.Cgroup2Requested() {
		return errors.New("the lab has no node with cgroup v2: `make lab-up NODE=cgroup2` adds it")
	}
	out, err := n.RunInCgroup2(ctx, strings.Join(args, " "))
	if _, writeErr := os.Stdout.Write(out); writeErr != nil {
		return errors.Join(err, writeErr)
	}
	if failed, ok := errors.AsType[*uml.ExitError](err); ok {
		os.Exit(failed.Code) // the command has printed its error
	}
	return err
}
