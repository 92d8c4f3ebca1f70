// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/netns"
	"github.com/memfit/memfit/hack/lab/internal/relay"
)

// runServeForward runs the daemon that forwards a port of the machine to the API server in the namespace.
func runServeForward(ctx context.Context, _ layout.Layout, args []string) error {
	flags := flag.NewFlagSet("serve-forward", flag.ContinueOnError)
	listen := flags.String("listen", "", "address on the machine")
	target := flags.String("target", "", "address inside the namespace")
	namespace := flags.String("netns", "", "path of the network namespace")
	if err := flags.Parse(args); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return fmt.Errorf("listening for the lab: %w", err)
	}
	return relay.Serve(ctx, listener, func(ctx context.Context) (net.Conn, error) {
		return netns.Dial(ctx, *namespace, *target)
	})
}

func runLogs(_ context.Context, l layout.Layout, args []string) error {
	if len(args) != 1 {
		return errors.New("no daemon to show: lab logs NAME; `lab status` lists the names")
	}
	f, err := os.Open(l.Log(args[0]))
	if err != nil {
		return fmt.Errorf("no log of %q (`lab status` lists the names): %w", args[0], err)
	}
	defer f.Close()
	_, err = io.Copy(os.Stdout, f)
	return err
}

func runRestart(ctx context.Context, l layout.Layout, args []string) error {
	if len(args) != 1 {
		return errors.New("no daemon to restart: lab restart NAME; `lab status` lists the names")
	}
	n, err := running(l)
	if err != nil {
		return err
	}
	return n.Restart(ctx, args[0])
}
