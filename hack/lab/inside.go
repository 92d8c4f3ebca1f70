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
	"os/exec"
	"strings"

	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/netns"
	"github.com/memfit/memfit/hack/lab/internal/relay"
)

// runExec runs a command inside the network namespace, for example curl against a pod's address.
func runExec(ctx context.Context, l layout.Layout, args []string) error {
	if len(args) == 0 {
		return errors.New("nothing to run: lab exec -- COMMAND")
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := netns.Do(l.NetNS(), cmd.Start); err != nil {
		return err
	}
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(exit.ExitCode()) // the command has said what is wrong
	}
	return err
}

func runForward(ctx context.Context, l layout.Layout, args []string) error {
	flags := flag.NewFlagSet("forward", flag.ContinueOnError)
	listen := flags.String("listen", "", "address on the machine, for example 127.0.0.1:9090; empty picks a free port")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("what to forward: lab forward NAMESPACE/POD:PORT or lab forward IP:PORT")
	}
	n, err := running(l)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(flags.Arg(0))
	if err != nil {
		return fmt.Errorf("%q is not an address: %w", flags.Arg(0), err)
	}
	if namespace, pod, ok := strings.Cut(host, "/"); ok {
		if host, err = n.PodIP(ctx, namespace, pod); err != nil {
			return err
		}
	}
	address, err := n.Forward(net.JoinHostPort(host, port), *listen)
	if err != nil {
		return err
	}
	fmt.Println(address)
	return nil
}

// runServeForward is the daemon behind forward and behind the API server's address.
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
		return errors.New("whose log: lab logs NAME; `lab status` lists the names")
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
		return errors.New("restart what: lab restart NAME; `lab status` lists the names")
	}
	n, err := running(l)
	if err != nil {
		return err
	}
	return n.Restart(ctx, args[0])
}
