// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/readers"
	"github.com/memfit/memfit/internal/procmem/live"
)

// cost is what the agent takes for itself.
type cost struct {
	cpu       float64 // percent of a core
	rss       float64 // MiB
	inspected int     // containers that it has looked into
	writes    int
	perHour   float64   // writes for each container
	threads   []float64 // percent of a core of each thread, the most first
}

// cost lets the agent run beside containers in which nothing happens. These are the minutes of an agent that cost most:
// it has just started, inspects all containers and writes all snapshots.
func (b *bench) cost(ctx context.Context, o options) (c cost, err error) {
	pid := b.node.PID()
	if err := wait(ctx, o.settle); err != nil {
		return c, err
	}
	before, _, err := taken(pid)
	if err != nil {
		return c, err
	}
	threads, began := threadTimes(pid), time.Now()
	if err := wait(ctx, o.steady); err != nil {
		return c, err
	}
	after, rss, err := taken(pid)
	if err != nil {
		return c, err
	}
	took := time.Since(began)
	c.cpu = 100 * float64(after-before) / float64(took)
	for id, now := range threadTimes(pid) {
		c.threads = append(c.threads, 100*float64(now-threads[id])/float64(took))
	}
	slices.SortFunc(c.threads, func(a, b float64) int { return cmp.Compare(b, a) })
	_, c.writes = b.node.Requests()
	// each is written once after its start, which is not a quiet time: what comes above that counts
	c.perHour = max(float64(c.writes-len(b.pods)), 0) / float64(len(b.pods)) *
		float64(time.Hour) / float64(o.settle+took)
	c.rss = float64(rss) / (1 << 20)
	for _, pod := range b.pods {
		s, ok := b.node.Snapshot(pod.Name)
		if ok && len(s.Containers) > 0 && s.Containers[0].Inspection == v1alpha1.InspectionDone {
			c.inspected++
		}
	}
	return c, nil
}

// Kinds of windows.
const (
	stopped  = iota // the agent is stopped
	watching        // it runs
	looking         // it is stopped, and somebody looks into the process without a pause, as the agent does
	kinds
)

// noticed is what the allocating process notices.
type noticed struct {
	watching float64        // p99.9 while it is watched, of that while the agent is stopped
	pause    float64        // milliseconds by which the longest allocation of a window is longer while somebody looks
	p999     [kinds]float64 // microseconds, medians of all windows
	longest  [kinds]float64 // milliseconds, medians
	looks    int64
}

// window is how long the process allocates at a time. The kernel takes real-time processes off the processor for 50 ms
// of each second: between windows there is a pause.
const window = 600 * time.Millisecond

func (b *bench) noticed(ctx context.Context, rounds int) (n noticed, err error) {
	var p999, longest [kinds][]float64
	for range rounds {
		for kind := range kinds {
			one, looks, err := b.window(ctx, kind)
			if err != nil {
				return n, err
			}
			n.looks += looks
			p999[kind] = append(p999[kind], one[2]/1e3)
			longest[kind] = append(longest[kind], one[3]/1e6)
		}
	}
	for kind := range kinds {
		n.p999[kind], n.longest[kind] = median(p999[kind]), median(longest[kind])
	}
	n.watching = n.p999[watching] / n.p999[stopped]
	n.pause = max(n.longest[looking]-n.longest[stopped], 0)
	return n, nil
}

func median(of []float64) float64 {
	of = slices.Clone(of)
	slices.Sort(of)
	return of[len(of)/2]
}

// window lets the process allocate for a while, and returns what it reports about it: p50, p99, p99.9 and the longest,
// in nanoseconds.
func (b *bench) window(ctx context.Context, kind int) (said [4]float64, looks int64, err error) {
	agent := b.node.PID()
	signal := unix.SIGSTOP
	if kind == watching {
		signal = unix.SIGCONT
	}
	if err := unix.Kill(agent, signal); err != nil {
		return said, 0, err
	}
	defer func() { _ = unix.Kill(agent, unix.SIGCONT) }()
	if err := wait(ctx, window); err != nil {
		return said, 0, err
	}
	looker := make(chan error, 1)
	var over atomic.Bool
	go func() {
		// At the priority of the process that is looked at: a look that other programs take the processor from holds the
		// lock of the mappings for as long as they do, and that is not what is measured.
		runtime.LockOSThread() // and never unlocked, so that the thread ends with this function
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
		_ = unix.SchedSetAttr(0, &attr, 0)
		var err error
		for kind == looking && !over.Load() && err == nil {
			looks++
			err = look(ctx, b.target.Process.Pid)
		}
		looker <- err
	}()
	if _, err := fmt.Fprintln(b.ask, window.Milliseconds()); err != nil {
		return said, 0, err
	}
	line, err := b.answers.ReadString('\n')
	over.Store(true)
	if looked := <-looker; err == nil {
		err = looked
	}
	if err != nil {
		return said, looks, err
	}
	_, err = fmt.Sscan(line, &said[0], &said[1], &said[2], &said[3])
	return said, looks, err
}

// look is what the agent does with a process.
func look(ctx context.Context, pid int) error {
	target, err := live.Open("/proc", pid)
	if err != nil {
		return fmt.Errorf("looking into process %s: %w", strconv.Itoa(pid), err)
	}
	defer target.Close()
	s, err := attribution.Take(target)
	if err != nil {
		return err
	}
	_, err = attribution.Attribute(ctx, s, readers.All(time.Now))
	return err
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
