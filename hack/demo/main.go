// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo tells memfit's story on a real cluster: a Node.js service dies in bursts, gets its settings, gets its
// size, and lives. Every number it prints is read from the API server, the kubelet or the process itself; whatever does
// not happen ends it with exit code 1. It needs a cluster with memfit and the lab's workload images: make demo brings
// both.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	kubectl := flag.String("kubectl", "kubectl", "the kubectl to run")
	manifests := flag.String("manifests", "hack/demo/manifests", "the kustomization to apply")
	flag.Parse()

	start := time.Now()
	if err := run(ctx, *kubectl, *manifests); err != nil {
		fmt.Fprintf(os.Stderr, "\nThe story did not happen: %v\n", err)
		if errors.Is(err, context.Canceled) {
			os.Exit(130)
		}
		os.Exit(1)
	}
	fmt.Printf("\nTold in %s. The cluster is still running; try:\n", time.Since(start).Round(time.Second))
	fmt.Print(`  export KUBECONFIG=$(make -s lab-kubeconfig)
  kubectl get mprof,memrec -n memfit-demo
  kubectl describe memrec deployment-bursts -n memfit-demo
  kubectl explain memoryprofile.spec.tuning
  make demo-down        # removes everything
`)
}

func run(ctx context.Context, kubectl, manifests string) error {
	s, err := newStory(ctx, kubectl)
	if err != nil {
		return err
	}
	var told acts
	for i, act := range []struct {
		title string
		play  func(context.Context, *story, *acts) error
	}{
		{"A Node.js service, a JVM and a Go program; nobody looks after the first", withManifests(manifests)},
		{"Without memfit it does not survive its bursts", withoutMemfit},
		{"Opt in with one annotation: the next pod fits its heap to its limit", withSettings},
		{"Read what memfit found", readRecommendation},
		{"Let new pods have the recommended size", withRecommendation},
		{"The JVM and the Go program got what they understand", others},
	} {
		s.heading(i+1, act.title)
		if err := act.play(ctx, s, &told); err != nil {
			return fmt.Errorf("act %d (%s): %w", i+1, act.title, err)
		}
	}
	s.heading(7, "Before and after")
	return told.print(os.Stdout)
}
