// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command agentbench measures what the agent costs at tier See: its own processor time and RSS beside some hundred
// containers of real runtimes, and what an allocating process notices of it, with the agent stopped and running in
// turns (`make bench-agent`). It prints key=value and exits 1 where a bound is broken. It takes root and real cgroups.
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

// Bounds of what the agent may cost (docs/evidence/agent.md).
const (
	boundCPU     = 1.0   // percent of a core
	boundRSS     = 64.0  // MiB
	boundP999    = 1.10  // of the allocations' p99.9 while the agent is stopped
	boundPause   = 5.0   // milliseconds more than while nobody looks
	boundPerHour = 6.0   // writes for each container in quiet times
	share        = 1e-12 // what rounding may add
)

type options struct {
	agent          string
	pods, rounds   int
	settle, steady time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.agent, "agent", "bin/agent", "The agent's program.")
	flag.IntVar(&o.pods, "pods", 104, "Containers beside the one that allocates.")
	flag.DurationVar(&o.settle, "settle", 45*time.Second, "How long the agent runs before it is measured.")
	flag.DurationVar(&o.steady, "steady", 2*time.Minute, "How long its processor time is measured.")
	flag.IntVar(&o.rounds, "rounds", 20, "Windows of the allocating process of each kind: stopped, watching, looking.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	broken, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "agentbench:", err)
	}
	if err != nil || broken {
		stop()
		os.Exit(1)
	}
}

// run measures and prints, and reports whether a bound is broken.
func run(ctx context.Context, o options) (broken bool, err error) {
	if os.Geteuid() != 0 {
		return false, errors.New("it takes root, to make cgroups and to read processes")
	}
	b, err := prepare(ctx, o)
	defer func() { err = errors.Join(err, b.close()) }()
	if err != nil {
		return false, err
	}
	check := func(key string, value, bound float64) {
		verdict := ""
		if value > bound+share {
			broken, verdict = true, "  # above its bound"
		}
		fmt.Printf("%s=%.2f bound=%.2f%s\n", key, value, bound, verdict)
	}
	fmt.Printf("pods=%d processes=%s load=%s\n", o.pods+1, b.kinds(), load())
	cost, err := b.cost(ctx, o)
	if err != nil {
		return broken, err
	}
	check("cpu_percent_of_core", cost.cpu, boundCPU)
	check("rss_mib", cost.rss, boundRSS)
	most := cost.threads[:min(len(cost.threads), 6)]
	fmt.Printf("looked_into=%d writes=%d cpu_percent_of_threads=%.2f load=%s\n", cost.inspected, cost.writes, most, load())
	check("writes_per_container_and_hour", cost.perHour, boundPerHour)
	noticed, err := b.noticed(ctx, o.rounds)
	if err != nil {
		return broken, err
	}
	check("p999_ratio_watching", noticed.watching, boundP999)
	check("pause_ms_more_while_looking", noticed.pause, boundPause)
	fmt.Printf("looks_during_windows=%d p999_us_stopped=%.1f p999_us_watching=%.1f p999_us_looking=%.1f\n", noticed.looks,
		noticed.p999[stopped], noticed.p999[watching], noticed.p999[looking])
	fmt.Printf("longest_ms_stopped=%.2f longest_ms_watching=%.2f longest_ms_looking=%.2f load=%s\n",
		noticed.longest[stopped], noticed.longest[watching], noticed.longest[looking], load())
	return broken, nil
}
