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
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// The bars. They are for one core and hold at the largest size that is measured.
const (
	mostPass      = 2 * time.Second // over atContainers
	mostHeap      = memory.Bytes(1536)
	atContainers  = 100_000
	mostWrites    = 8.0 // per workload and hour: six checkpoints, a status, and something happening
	loopReplicas  = 10
	vpaLoopAtMost = 10_000 // each of VPA's loops looks at every pod for every VPA
)

// options are the flags.
type options struct {
	sizes     []int
	hours     time.Duration
	workloads int
	profiles  string
	loopOnly  bool
}

func main() {
	var o options
	sizes := flag.String("containers", "1000,10000,100000", "sizes to measure, separated by commas")
	flag.DurationVar(&o.hours, "hours", 6*time.Hour, "time that passes while writes are counted")
	flag.IntVar(&o.workloads, "workloads", 50, "workloads whose writes are counted")
	flag.BoolVar(&o.loopOnly, "loop-only", false, "measure only memfit's minute: no models, no writes, no VPA")
	flag.StringVar(&o.profiles, "profiles", "",
		"directory for profiles of memfit's minute, loop-CONTAINERS.cpu and .heap, for go tool pprof; empty: none")
	flag.Parse()
	if o.profiles != "" {
		runtime.MemProfileRate = 4 << 10 // the usual 512 KiB misses what is many and small
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if o.sizes, err = numbers(*sizes); err == nil {
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scalebench:", err)
		os.Exit(1)
	}
}

func numbers(list string) ([]int, error) {
	var all []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < loopReplicas {
			return nil, fmt.Errorf("--containers: %q is no number of containers of at least %d", text, loopReplicas)
		}
		all = append(all, n)
	}
	return all, nil
}

func run(ctx context.Context, o options) error {
	var missed []error
	for _, n := range o.sizes {
		if !o.loopOnly {
			missed = append(missed, models(n))
		}
		missed = append(missed, loops(ctx, n, o))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if o.loopOnly {
		return errors.Join(missed...)
	}
	return errors.Join(append(missed, counts(ctx, o))...)
}

// models compares what must be known of a container, and one answer from it.
func models(n int) error {
	fmt.Fprintf(os.Stderr, "scalebench: %d histories\n", n)
	m, err := memfitModel(n)
	if err != nil {
		return err
	}
	fmt.Println(m)
	v, err := vpaModel(n)
	if err != nil {
		return err
	}
	fmt.Println(v)
	return m.within(mostPass, mostHeap)
}

// loops compares all that runs in a minute, on workloads of ten.
func loops(ctx context.Context, n int, o options) error {
	fmt.Fprintf(os.Stderr, "scalebench: %d containers in %d workloads\n", n, n/loopReplicas)
	m, err := memfitLoop(ctx, n, loopReplicas, o.profiles)
	if err != nil {
		return err
	}
	fmt.Println(m)
	var missed error
	if n >= atContainers { // with few, what the process has anyway is much of it
		missed = m.withinHeap(mostHeap)
	}
	if o.loopOnly {
		return missed
	}
	if n > vpaLoopAtMost {
		fmt.Printf("what=loop containers=%d server=vpa not_measured: each of its loops looks at every pod for every VPA\n", n)
		return missed
	}
	v, err := vpaLoop(ctx, n, loopReplicas)
	if err == nil {
		fmt.Println(v)
	}
	return errors.Join(missed, err)
}

// counts compares what is written.
func counts(ctx context.Context, o options) error {
	fmt.Fprintf(os.Stderr, "scalebench: %s of %d workloads\n", o.hours, o.workloads)
	m, err := memfitWrites(ctx, o.workloads, loopReplicas, o.hours)
	if err != nil {
		return err
	}
	fmt.Printf("%v budget_per_hour=%.0f\n", m, mostWrites)
	v, err := vpaWrites(ctx, o.workloads, loopReplicas, o.hours)
	if err != nil {
		return err
	}
	fmt.Println(v)
	if got := m.perHour(m.writes.all()); got > mostWrites {
		return fmt.Errorf("memfit writes %.2f times per workload and hour, its budget is %.0f", got, mostWrites)
	}
	return nil
}

// within says which bar a cost misses.
func (c cost) within(pass time.Duration, heap memory.Bytes) error {
	var missed []error
	if allowed := pass * time.Duration(c.containers) / atContainers; c.containers >= atContainers && c.pass > allowed {
		missed = append(
			missed,
			fmt.Errorf(
				"%s of %d containers takes %s, at most %s is allowed", c.what, c.containers, c.pass.Round(time.Millisecond),
				allowed,
			),
		)
	}
	return errors.Join(append(missed, c.withinHeap(heap))...)
}

// withinHeap is the same for heap alone, which is held to a percent above: the rest of the process moves a little, too.
func (c cost) withinHeap(heap memory.Bytes) error {
	if c.heap <= (heap * memory.Bytes(c.containers)).Percent(101) {
		return nil
	}
	return fmt.Errorf(
		"%s of %d containers takes %d bytes of heap each, at most %d are allowed", c.what, c.containers,
		c.perContainer(int64(c.heap)), int64(heap),
	)
}
