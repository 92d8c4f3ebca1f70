// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command lab runs a real one-node Kubernetes cluster on a Linux machine that has no Docker, no images and no registry.
// It builds every program from pinned Go modules, starts the node in its own network namespace, and builds the workload
// images from Debian packages. `lab` without arguments lists its subcommands; README.md in this folder explains them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/machine"
)

// Exit codes for scripts.
const (
	exitFailed      = 1
	exitUnsupported = 2 // the lab cannot run on this machine
)

// command is one subcommand. The lab itself runs those without a summary, which are not listed.
type command struct {
	name    string
	usage   string
	summary string
	run     func(ctx context.Context, l layout.Layout, args []string) error
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := dispatch(ctx, os.Args[1:])
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, machine.ErrUnsupported):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitUnsupported)
	default:
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(exitFailed)
	}
}

func dispatch(ctx context.Context, args []string) error {
	l, err := layout.New(os.Getenv)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		printUsage()
		return flag.ErrHelp
	}
	name, args := args[0], args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	for _, c := range commands() {
		if c.name == name {
			return c.run(ctx, l, args)
		}
	}
	printUsage()
	return fmt.Errorf("unknown command %q", name)
}

func printUsage() {
	w := tabwriter.NewWriter(os.Stderr, 0, 4, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "Usage: lab COMMAND [flags]")
	for _, c := range commands() {
		if c.summary != "" {
			fmt.Fprintf(w, "  %s %s\t%s\n", c.name, c.usage, c.summary)
		}
	}
}
