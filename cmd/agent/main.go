// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command agent reads the memory of the containers of its own node and writes a MemorySnapshot for each pod: the
// effective limits, the minute before an OOM kill, and at tier See what fills a container. docs/guide/agent.md
// describes what it needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/memfit/memfit/cmd/agent/internal/pods"
	"github.com/memfit/memfit/cmd/agent/internal/profiles"
	"github.com/memfit/memfit/cmd/agent/internal/scan"
	"github.com/memfit/memfit/cmd/agent/internal/see"
	"github.com/memfit/memfit/cmd/agent/internal/snapshot"
	"github.com/memfit/memfit/internal/attribution/readers"
	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/liveness"
	"github.com/memfit/memfit/internal/procmem/live"
)

// version is set by the build.
var version = "unknown"

type options struct {
	node, tier, cgroups, proc, address, server string
	printVersion                               bool
}

func main() {
	var o options
	o.bind(flag.CommandLine, os.Getenv)
	flag.Parse()
	if o.printVersion {
		fmt.Println(version)
		return
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	klog.SetSlogLogger(log)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, o, log); err != nil {
		log.Error("Agent stopped", "error", err)
		os.Exit(1)
	}
}

// bind defines the flags. NODE_NAME in the environment is a default.
func (o *options) bind(f *flag.FlagSet, env func(string) string) {
	f.StringVar(&o.node, "node-name", env("NODE_NAME"), "Node whose pods are read; by default $NODE_NAME.")
	f.StringVar(&o.tier, "tier", "watch", "What the agent reads: watch (the kernel's counters) or "+
		"see (also the memory of processes).")
	f.StringVar(&o.cgroups, "cgroup-root", "/sys/fs/cgroup", "Directory where the cgroups of the node are mounted.")
	f.StringVar(&o.proc, "proc-root", "/proc", "Directory where the node's /proc is mounted (hostPID).")
	f.StringVar(&o.address, "bind-address", ":8082", "Address of /healthz and /metrics.")
	f.StringVar(&o.server, "api-server", "", "URL of an unauthenticated API server, for tests only; "+
		"empty: the cluster that this pod is in.")
	f.BoolVar(&o.printVersion, "version", false, "Print the version and exit.")
}

func run(ctx context.Context, o options, log *slog.Logger) error {
	if o.node == "" {
		return errors.New("node name required: set --node-name or NODE_NAME")
	}
	if o.tier != "watch" && o.tier != "see" {
		return fmt.Errorf("--tier=%s: must be watch or see", o.tier)
	}
	tree, err := cgroup.Open(folder(o.cgroups))
	if err != nil {
		return fmt.Errorf("opening %s: %w", o.cgroups, err)
	}
	config := &rest.Config{Host: o.server}
	if o.server == "" {
		config, err = rest.InClusterConfig()
	}
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	core, own, err := clients(config)
	if err != nil {
		return err
	}
	set, writer, watchdog := pods.NewSet(), snapshot.NewWriter(own), liveness.NewWatchdog(clock.RealClock{})
	rescues := profiles.NewSet()
	loop := &scan.Loop{
		Rescues: rescues.Rescues, Tree: tree, Proc: live.Proc(o.proc), Pods: set, Writer: writer, Node: o.node, Log: log,
		Metrics: scan.NewMetrics(prometheus.DefaultRegisterer),
	}
	if w, err := newWatch(ctx, o.cgroups, log); err != nil {
		log.Warn("Detecting new containers takes up to 10 s", "error", err)
	} else {
		loop.Created, loop.Watch = w.Created, w.Watch
	}
	if o.tier == "see" {
		worker := see.New(o.proc, tree.Version(), readers.All(time.Now), time.Now, watchdog)
		loop.Inspector = worker
		go worker.Run(ctx)
	}
	var lastTick atomic.Int64
	lastTick.Store(time.Now().UnixNano())
	if err := serve(ctx, o.address, &lastTick, watchdog, log); err != nil {
		return err
	}
	go set.Watch(ctx, core, o.node)
	go rescues.Watch(ctx, own)
	go writer.Run(ctx)
	log.Info("Starting the agent", "version", version, "node", o.node, "tier", o.tier, "cgroup", tree.Version().String())
	tick(ctx, loop, &lastTick)
	return nil
}

// accountEvery is the interval between measurements of the processor time of tick's thread.
const accountEvery = 5 * time.Second

// tick runs the loop until ctx ends, on a thread of its own, so that it can measure the cost of reading.
func tick(ctx context.Context, loop *scan.Loop, lastTick *atomic.Int64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	every := scan.TickEvery
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	accounted, used := time.Now(), scan.ThreadTime()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			loop.Tick(ctx, now)
			if next := loop.Every(); next != every {
				every = next
				ticker.Reset(every)
			}
			lastTick.Store(time.Now().UnixNano())
			if elapsed := now.Sub(accounted); elapsed >= accountEvery {
				total := scan.ThreadTime()
				loop.Spent(total-used, elapsed)
				accounted, used = now, total
			}
		}
	}
}
