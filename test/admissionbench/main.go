// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Program admissionbench measures what an admission webhook costs: memfit's webhook, one of the same framework that
// does nothing, and the Vertical Pod Autoscaler's admission controller, which is built from its own Go module in
// test/peers. All three get the same pods from the same client in the same run, and know a cluster of the same size.
// See test/peers/README.md for what is fair about it and what is not.
//
// Everything is on the loopback interface, bounded in count and time, and ends with the program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

// options are the flags.
type options struct {
	vpa         string
	workloads   int
	profiles    int
	warmup      int
	latency     int
	throughput  int
	connections int
	rounds      int
	hostile     int
	limit       time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.vpa, "vpa", "", "VPA's admission controller; empty: not measured")
	flag.IntVar(
		&o.workloads, "workloads", 20_000,
		"Deployments, each with its ReplicaSet; at 5 replicas 20000 are the owners of 100000 pods",
	)
	flag.IntVar(
		&o.profiles, "profiles", 10_000,
		"workloads with a MemoryProfile and a MemoryRecommendation, and a VerticalPodAutoscaler, of their own",
	)
	flag.IntVar(&o.warmup, "warmup", 4_000, "requests before the first measurement of a server and case")
	flag.IntVar(&o.latency, "latency", 5_000, "requests one after the other, for latency, per round")
	flag.IntVar(
		&o.throughput, "throughput", 15_000,
		"requests over all connections, for throughput, per round; a third of it over HTTP/2",
	)
	flag.IntVar(&o.connections, "connections", 8, "connections at once, for throughput")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds; the median of each number is reported")
	flag.IntVar(
		&o.hostile, "hostile", 0,
		"measure memfit alone, without and with so many idle and slow connections, and fail where what is promised does "+
			"not hold",
	)
	flag.DurationVar(&o.limit, "limit", 10*time.Minute, "give up after this time")
	serve := flag.String(
		"serve", "", "be the server noop or memfit (the program starts itself so), with --certificates, --port and --metrics",
	)
	certDir := flag.String("certificates", "", "folder with tls.crt and tls.key")
	port := flag.Int("port", 0, "port of the webhook")
	metricsAddr := flag.String("metrics", "0", "address of the metrics")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	var err error
	switch *serve {
	case "":
		err = run(ctx, o)
	case "noop":
		err = webhookServer(*certDir, *port).noop(ctx)
	case "memfit":
		err = webhookServer(*certDir, *port).memfit(ctx, *metricsAddr)
	default:
		err = fmt.Errorf("--serve must be noop or memfit, not %s", *serve)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "admissionbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if 2*o.profiles > o.workloads {
		return errors.New("every second workload has a profile: --profiles may not be more than half of --workloads")
	}
	dir, err := os.MkdirTemp("", "admissionbench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	certs, err := makeCertificates(dir)
	if err != nil {
		return err
	}
	world, err := makeWorld(o.workloads, o.profiles)
	if err != nil {
		return err
	}
	api, err := serveAPI(ctx, world, filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return err
	}
	fmt.Printf("world: %d Deployments and ReplicaSets (owners of %d pods), %d profiles or VPAs, %d namespaces\n",
		o.workloads, o.workloads*replicas, o.profiles, namespaces)

	servers, err := startServers(ctx, o, dir, certs, api)
	defer func() {
		for _, s := range servers {
			s.stop()
		}
	}()
	if err != nil {
		return err
	}
	cases, err := world.cases()
	if err != nil {
		return err
	}
	for _, s := range servers {
		if err := s.check(o, certs, cases); err != nil {
			return fmt.Errorf("%s does not answer as it should: %w", s.name, err)
		}
	}
	if o.hostile > 0 {
		return underAttack(ctx, o, certs, servers[1], cases[0])
	}
	results, err := measure(ctx, o, certs, servers, cases)
	if err != nil {
		return err
	}
	return report(os.Stdout, servers, results)
}
