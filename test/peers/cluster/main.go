// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	nodes, workloads, replicas int
	measure, limit             time.Duration
	memfit, vpa, vpaCRDs       string
	crds                       string
	keep                       bool

	admission, start      bool
	pods, rollout         int
	firstDecision, behind time.Duration
	goMemLimit            string
	requests, repeat      int
	hostile               int
}

func main() {
	var o options
	flag.IntVar(&o.nodes, "nodes", 1000, "simulated nodes, at most 60000")
	flag.IntVar(&o.workloads, "workloads", 1000, "Deployments, each with a VerticalPodAutoscaler in mode Off")
	flag.IntVar(&o.replicas, "replicas", 10, "pods of each Deployment")
	flag.DurationVar(&o.measure, "measure", 3*time.Minute, "time that is measured, once both know every workload")
	flag.DurationVar(&o.limit, "limit", 15*time.Minute, "give up after this time")
	flag.StringVar(&o.memfit, "memfit", "", "memfit's manager")
	flag.StringVar(&o.vpa, "vpa", "", "VPA's recommender")
	flag.StringVar(&o.vpaCRDs, "vpa-crds", "", "file with the definitions of VPA's kinds")
	flag.StringVar(&o.crds, "crds", "", "folder with the definitions of memfit's kinds")
	flag.BoolVar(&o.keep, "keep", false, "keep the logs of all programs")
	flag.BoolVar(
		&o.start, "start", false,
		"instead of all that, measure how memfit starts in a cluster of many pods, and how it keeps up with a rollout; the "+
			"number of nodes and workloads follows from --pods",
	)
	flag.IntVar(&o.pods, "pods", 100_000, "with --start: pods that are there when memfit starts")
	flag.IntVar(&o.rollout, "rollout", 10_000, "with --start: pods that are replaced then")
	flag.DurationVar(&o.firstDecision, "first-decision", time.Minute, "with --start: fail when the first comes later")
	flag.DurationVar(
		&o.behind, "behind", time.Minute,
		"with --start: fail when workloads are queued or pods are not known for longer than this after the last new pod, or "+
			"when a node is not read for longer",
	)
	flag.StringVar(&o.goMemLimit, "gomemlimit", "", "with --start: GOMEMLIMIT of memfit, 900MiB for instance; empty: none")
	flag.BoolVar(
		&o.admission, "admission", false,
		"instead of all that, measure what the webhooks of memfit and, with --vpa, of VPA cost; every second workload has a "+
			"profile",
	)
	flag.IntVar(&o.requests, "requests", 15_000, "with --admission: requests of a round; a third of them over HTTP/2")
	flag.IntVar(&o.repeat, "rounds", 3, "with --admission: rounds; the median of each number is reported")
	flag.IntVar(
		&o.hostile, "hostile", 0,
		"with --admission: measure memfit alone, without and with so many idle and slow connections, and fail where what is "+
			"promised does not hold",
	)
	certificates := flag.String("certificates", "", "folder with tls.crt and tls.key of --noop")
	floor := flag.Int("noop", 0, "be a webhook on this port that allows everything (the program starts itself so)")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	run := o.run
	if *floor > 0 {
		run = func(ctx context.Context) error { return noop(ctx, *certificates, *floor) }
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func (o options) validate() error {
	needed := map[string]string{"memfit": o.memfit, "crds": o.crds}
	if o.vpa != "" || !o.start && !o.admission {
		needed["vpa"], needed["vpa-crds"] = o.vpa, o.vpaCRDs
	}
	for name, path := range needed {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
	}
	if o.nodes < 1 || o.nodes > 60_000 || o.workloads < 1 || o.replicas < 1 {
		return errors.New("--nodes must be 1 to 60000, --workloads and --replicas at least 1")
	}
	if o.start && (o.pods < o.replicas || o.pods > 1_000_000 || o.rollout < o.replicas) {
		return errors.New("--pods and --rollout must be at least --replicas, and --pods at most a million")
	}
	return nil
}

// run builds the cluster, lets both operators work on it, and reports.
func (o options) run(ctx context.Context) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cluster-")
	if err != nil {
		return err
	}
	defer func() {
		if o.keep {
			say("logs are in %s", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	switch {
	case o.start:
		return o.beginAndRoll(ctx, dir)
	case o.admission:
		return o.admit(ctx, dir)
	}
	o.pods = o.workloads * o.replicas
	w, stop, err := simulate(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := w.autoscaled(ctx); err != nil {
		return fmt.Errorf("creating VerticalPodAutoscalers: %w", err)
	}
	rivals, err := w.compete(ctx, o, dir)
	defer func() {
		for _, r := range rivals {
			r.stop()
		}
	}()
	if err != nil {
		return err
	}
	return w.report(ctx, o, rivals)
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "cluster: "+format+"\n", args...) }
