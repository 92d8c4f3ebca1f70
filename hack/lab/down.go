// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/machine"
	"github.com/memfit/memfit/hack/lab/internal/node"
	"github.com/memfit/memfit/hack/lab/internal/progress"
)

func runDown(ctx context.Context, l layout.Layout, args []string) error {
	if err := flag.NewFlagSet("down", flag.ContinueOnError).Parse(args); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: only root can stop processes of root. Run it again with sudo -E", machine.ErrUnsupported)
	}
	unlock, err := lockLab(ctx, l)
	if err != nil {
		return err
	}
	defer unlock()
	if err := (&node.Node{Layout: l}).Down(progress.New(os.Stderr, 0).Note); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "The lab is stopped. Built programs and images are kept in", l.Cache)
	return nil
}
