// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo shows memfit on a real cluster: a Node.js service fails in bursts, gets settings, gets a larger limit,
// and survives. All numbers are read from the API server, the kubelet or the process itself; if a step has another
// result, it exits with 1. It needs a cluster with memfit and the lab's workload images; make demo sets up both.
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
		fmt.Fprintf(os.Stderr, "\nThe demo failed: %v\n", err)
		if errors.Is(err, context.Canceled) {
			os.Exit(130)
		}
		os.Exit(1)
	}
	fmt.Printf("\nDone in %s. The cluster is still running; try:\n", time.Since(start).Round(time.Second))
	fmt.Print(`  export KUBECONFIG=$(make -s lab-kubeconfig)
  kubectl get mprof,memrec -n memfit-demo
  kubectl describe memrec deployment-bursts -n memfit-demo
  kubectl explain memoryprofile.spec.tuning
  make demo-down        # removes it, the node included
`)
}

func run(ctx context.Context, kubectl, manifests string) error {
	s, err := newSession(ctx, kubectl)
	if err != nil {
		return err
	}
	var results acts
	for i, act := range []struct {
		title  string
		run    func(context.Context, *session, *acts) error
		lesson string
	}{
		{
			"A Node.js service, a JVM and a Go program; the first has no profile", withManifests(manifests),
			"profiles are manifests like any other, and a workload without the annotation is not changed.",
		},
		{
			"Without memfit it does not survive its bursts", withoutMemfit,
			"a runtime that does not know its limit grows beyond it, and is killed or stalls.",
		},
		{
			"Opt in with one annotation: the next pod fits its heap to its limit", withSettings,
			"settings come with the next pod; a heap that fits may still need a larger limit.",
		},
		{
			"Read what memfit found", readRecommendation,
			"kubectl describe has every kill and stall, the recommendation and its reason.",
		},
		{
			"Let new pods have the recommended size", withRecommendation,
			"with sizing.mode OnCreate new pods get the size; the Deployment in Git does not change.",
		},
		{
			"The JVM and the Go program got settings of their runtime", others,
			"each runtime has settings of its own, and the process itself confirms them.",
		},
	} {
		s.heading(i+1, act.title)
		if err := act.run(ctx, s, &results); err != nil {
			return fmt.Errorf("act %d (%s): %w", i+1, act.title, err)
		}
		fmt.Printf("\nLearn: %s\n", act.lesson)
	}
	s.heading(7, "Before and after")
	if err := results.print(os.Stdout); err != nil {
		return err
	}
	fmt.Println("\nLearn: settings stop the kills, and the right size fits the load; a service needs both.")
	return nil
}
