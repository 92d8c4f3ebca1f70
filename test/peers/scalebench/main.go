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
	"strconv"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// The bounds, for one core.
const (
	maxPass      = 3 * time.Second    // a minute of operation of atContainers
	maxHeap      = memory.Bytes(1536) // per container, from atContainers on: with few, the process itself is much of it
	atContainers = 100_000
	maxWrites    = 8.0 // per workload and hour: six checkpoints, a status, and something happening
	loopReplicas = 10
)

// options are the flags.
type options struct {
	sizes     []int
	hours     time.Duration
	workloads int
}

func main() {
	var o options
	sizes := flag.String("containers", "1000,10000,100000", "sizes to measure, separated by commas")
	flag.DurationVar(&o.hours, "hours", 6*time.Hour, "time that passes while writes are counted; 0: they are not")
	flag.IntVar(&o.workloads, "workloads", 50, "workloads whose writes are counted")
	flag.Parse()

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
			return nil, fmt.Errorf("--containers: %q is not a number of at least %d", text, loopReplicas)
		}
		all = append(all, n)
	}
	return all, nil
}

// run measures everything, and returns what is out of bounds.
func run(ctx context.Context, o options) error {
	var missed []error
	for _, n := range o.sizes {
		fmt.Fprintf(os.Stderr, "scalebench: %d containers in %d workloads\n", n, n/loopReplicas)
		c, err := loop(ctx, n, loopReplicas)
		if err != nil {
			return errors.Join(append(missed, err)...)
		}
		fmt.Println(c)
		missed = append(missed, c.withinBounds())
	}
	if o.hours > 0 {
		missed = append(missed, counts(ctx, o))
	}
	return errors.Join(missed...)
}

// withinBounds returns an error for each bound that the cost exceeds.
func (c cost) withinBounds() error {
	if c.containers < atContainers {
		return nil
	}
	var missed []error
	if allowed := maxPass * time.Duration(c.containers) / atContainers; c.pass > allowed {
		missed = append(missed, fmt.Errorf("a minute of %d containers takes %s of processor time, at most %s is allowed",
			c.containers, c.pass.Round(time.Millisecond), allowed))
	}
	if c.heap > (maxHeap * memory.Bytes(c.containers)).Percent(101) {
		missed = append(missed, fmt.Errorf("%d containers take %d bytes of heap each, at most %d are allowed",
			c.containers, c.perContainer(int64(c.heap)), int64(maxHeap)))
	}
	return errors.Join(missed...)
}

// counts lets hours pass at memfit's defaults, a reading every 15 s, and counts what memfit writes meanwhile.
func counts(ctx context.Context, o options) error {
	fmt.Fprintf(os.Stderr, "scalebench: %s of %d workloads\n", o.hours, o.workloads)
	op, err := newOperator(ctx, o.workloads, loopReplicas)
	if err != nil {
		return err
	}
	if err := errors.Join(op.meet(ctx), op.remember(ctx)); err != nil {
		return err
	}
	op.maps.writes = writes{}
	if err := op.run(ctx, o.hours); err != nil {
		return err
	}
	perHour := func(n int64) float64 { return float64(n) / float64(o.workloads) / o.hours.Hours() }
	w := op.maps.writes
	fmt.Printf("what=writes workloads=%d hours=%.0f status_per_hour=%.2f checkpoints_per_hour=%.2f events_per_hour=%.2f "+
		"api_writes_per_hour=%.2f budget_per_hour=%.0f\n", o.workloads, o.hours.Hours(), perHour(w.status),
		perHour(w.checkpoints), perHour(w.events), perHour(w.all()), maxWrites)
	if got := perHour(w.all()); got > maxWrites {
		return fmt.Errorf("memfit writes %.2f times per workload and hour, at most %.0f are allowed", got, maxWrites)
	}
	return nil
}
