// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/memfit/memfit/hack/lab/internal/component"
	"github.com/memfit/memfit/hack/lab/internal/flock"
	"github.com/memfit/memfit/hack/lab/internal/images"
	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/machine"
	"github.com/memfit/memfit/hack/lab/internal/node"
	"github.com/memfit/memfit/hack/lab/internal/progress"
	"github.com/memfit/memfit/hack/lab/internal/uml"
)

func runUp(ctx context.Context, l layout.Layout, args []string) error {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	options := node.DefaultOptions()
	flags.DurationVar(&options.CrashBackoffMax, "crash-backoff-max", options.CrashBackoffMax,
		"longest pause before a crashed container restarts (Kubernetes: 5m). For labs only")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return up(ctx, l, options)
}

// up starts a lab with these options, unless a healthy one is running.
func up(ctx context.Context, l layout.Layout, options node.Options) error {
	if err := machine.Check(l.Cache, l.State); err != nil {
		return err
	}
	second, err := secondNode(os.Getenv)
	if err != nil {
		return err
	}
	needs := machine.Needs()
	if second != nil {
		needs = append(needs, uml.Needs()...)
	}
	if err := machine.Install(ctx, os.Stderr, needs); err != nil {
		return err
	}
	unlock, err := lockLab(ctx, l)
	if err != nil {
		return err
	}
	defer unlock()

	kubernetes, err := component.FindKubernetes(os.Getenv("LAB_KUBERNETES"))
	if err != nil {
		return err
	}
	options.Kubernetes = kubernetes.Version
	programs := component.All(kubernetes)
	if os.Getenv("LAB_CERT_MANAGER") == "0" {
		options.CertManager, programs = false, component.Without(programs, component.CertManager)
	}
	recipes, err := images.Select(os.Getenv("LAB_IMAGES"))
	if err != nil {
		return fmt.Errorf("LAB_IMAGES: %w", err)
	}
	steps := component.Count(programs) + len(recipes) + options.StartSteps()
	if second != nil {
		steps += node.Cgroup2Steps
	}
	report := progress.New(os.Stderr, steps)
	n, err := build(ctx, l, kubernetes, programs, recipes, options, report)
	if err != nil {
		return err
	}
	if second != nil {
		if err := second.build(ctx, n, report); err != nil {
			return err
		}
	}
	if err := upFirst(ctx, n, report); err != nil {
		return err
	}
	if err := upSecond(ctx, n, second, report); err != nil {
		return err
	}
	report.Total(fmt.Sprintf("The lab is running Kubernetes %s. Kubeconfig: %s", options.Kubernetes, l.Kubeconfig()))
	return nil
}

// upFirst starts the control plane and the lab's own node, unless both are running and healthy.
func upFirst(ctx context.Context, n *node.Node, report *progress.Reporter) error {
	if reason := n.Reusable(ctx); reason == nil {
		if err := n.Refresh(ctx); err != nil {
			return err
		}
		report.Note("The lab is already running Kubernetes %s", n.Options.Kubernetes)
		return nil
	} else if _, err := os.Stat(n.Layout.Records()); err == nil {
		report.Note("Replacing the lab: %v", reason)
	}
	if err := n.Down(report.Note); err != nil {
		return fmt.Errorf("cleaning up after the previous lab: %w", err)
	}
	if err := n.Start(ctx, report); err != nil {
		return fmt.Errorf("%w\n`lab status` lists the processes, logs are in %s, `lab down` cleans up", err, n.Layout.Logs())
	}
	return nil
}

// build builds the programs and images that the cache lacks. Both run in parallel: images mostly wait for downloads.
func build(
	ctx context.Context, l layout.Layout, kubernetes component.Kubernetes, programs []component.Component,
	recipes []images.Recipe, options node.Options, report *progress.Reporter,
) (*node.Node, error) {
	n := &node.Node{Layout: l, Options: options}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		n.Bin, err = buildBinaries(ctx, l, kubernetes, programs, report)
		return err
	})
	group.Go(func() (err error) {
		n.Images, err = buildImages(ctx, l, recipes, report)
		return err
	})
	return n, group.Wait()
}

// lockLab waits until no other command of this lab runs, and blocks new ones until unlock is called.
func lockLab(ctx context.Context, l layout.Layout) (unlock func(), err error) {
	return flock.Lock(ctx, l.Lock(), progress.New(os.Stderr, 0).Note)
}
