// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package agentbench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/readers"
	"github.com/memfit/memfit/internal/detect"
	"github.com/memfit/memfit/internal/procmem/live"
)

// Kinds of windows.
const (
	stopped    = iota // the agent is stopped
	watching          // the agent runs
	inspecting        // the agent is stopped, and the test inspects the process continuously
	kinds
)

// window is how long the process allocates at a time. The kernel stops real-time processes for 50 ms of each second,
// which must happen in the pause between windows.
const window = 600 * time.Millisecond

// measureTarget measures the p99.9 and the longest of the target's allocations, in windows of each kind in turns.
func (b *bench) measureTarget(t *testing.T) {
	t.Helper()
	var p999, longest [kinds][]float64 // microseconds, milliseconds
	inspections := int64(0)
	for range *rounds {
		for kind := range kinds {
			reported, n := b.window(t, kind)
			inspections += n
			p999[kind], longest[kind] = append(p999[kind], reported[2]/1e3), append(longest[kind], reported[3]/1e6)
		}
	}
	check(t, "p999_ratio_watching", median(p999[watching])/median(p999[stopped]), boundP999)
	check(t, "pause_ms_more_while_inspecting", max(median(longest[inspecting])-median(longest[stopped]), 0), boundPause)
	t.Logf("inspections_during_windows=%d p999_us_stopped=%.1f p999_us_watching=%.1f p999_us_inspecting=%.1f", inspections,
		median(p999[stopped]), median(p999[watching]), median(p999[inspecting]))
	t.Logf("longest_ms_stopped=%.2f longest_ms_watching=%.2f longest_ms_inspecting=%.2f load=%s",
		median(longest[stopped]), median(longest[watching]), median(longest[inspecting]), load())
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}

// window lets the target allocate for a window, and returns p50, p99, p99.9 and the longest of its allocations in
// nanoseconds.
func (b *bench) window(t *testing.T, kind int) (reported [4]float64, inspections int64) {
	t.Helper()
	agent, signal := b.node.PID(), unix.SIGSTOP
	if kind == watching {
		signal = unix.SIGCONT
	}
	if err := unix.Kill(agent, signal); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Kill(agent, unix.SIGCONT) }()
	time.Sleep(window)
	inspector := make(chan error, 1)
	var over atomic.Bool
	go func() {
		// With the target's priority: an inspection that is preempted by other programs would hold the lock of the
		// target's mappings meanwhile.
		runtime.LockOSThread() // never unlocked, so that the thread ends with this function
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
		_ = unix.SchedSetAttr(0, &attr, 0)
		var err error
		for kind == inspecting && !over.Load() && err == nil {
			inspections++
			err = inspect(t.Context(), b.target.Process.Pid)
		}
		inspector <- err
	}()
	_, err := fmt.Fprintln(b.input, window.Milliseconds())
	line := ""
	if err == nil {
		line, err = b.answers.ReadString('\n')
	}
	over.Store(true)
	if failed := <-inspector; failed != nil {
		t.Fatal(failed)
	}
	if err == nil {
		_, err = fmt.Sscan(line, &reported[0], &reported[1], &reported[2], &reported[3])
	}
	if err != nil {
		t.Fatalf("the allocating process: %v", err)
	}
	return reported, inspections
}

// inspect inspects a process like the agent.
func inspect(ctx context.Context, pid int) error {
	dir, err := live.Proc("/proc").Process(pid)
	if err != nil {
		return err
	}
	target, err := dir.Target(pid)
	if err != nil {
		return fmt.Errorf("inspecting process %d: %w", pid, err)
	}
	defer target.Close()
	s, err := attribution.Take(target, detect.Variables())
	if err != nil {
		return err
	}
	_, err = attribution.Attribute(ctx, s, readers.All(time.Now))
	return err
}
