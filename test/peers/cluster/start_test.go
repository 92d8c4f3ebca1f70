// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/memfit/memfit/internal/memory"
)

// startManager starts a replica of the manager as it is installed, with leader election, but without the webhook.
func (w *world) startManager(t *testing.T, o options) *program {
	t.Helper()
	for _, address := range []*string{&w.metrics, &w.probes} {
		var err error
		if *address, err = freeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	if w.environment = nil; o.goMemLimit != "" {
		w.environment = []string{"GOMEMLIMIT=" + o.goMemLimit}
	}
	return w.launch(
		t, t.TempDir(), "memfit", o.memfit, "--metrics-bind-address="+w.metrics, "--metrics-secure=false",
		"--health-probe-bind-address="+w.probes, "--kubelet-insecure-skip-verify",
	)
}

// milestone is the time at which something was first observed, and the manager's usage until then.
type milestone struct {
	at time.Time
	usage
}

// record sets the milestone at the first call.
func (r *milestone) record(p *program) (err error) {
	if r.at.IsZero() {
		r.at = time.Now()
		r.usage, err = p.usage()
	}
	return err
}

// measureStart waits until every workload has a measured decision, and prints the times of all milestones. late is an
// error when the first decision took longer than o.firstDecision.
func (w *world) measureStart(ctx context.Context, o options, p *program, a *statuses) (late, err error) {
	began, busy := time.Now(), load()
	var ready, synced, first, decided, measured milestone
	printed := began
	err = wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if err := p.alive(); err != nil {
			return false, err
		}
		some, of, _, err := a.counts()
		for _, m := range []struct {
			*milestone
			what string
			yet  func() bool
		}{
			{&ready, "ready", func() bool { return w.ready(ctx) }}, {&synced, "all pods are known", p.synced},
			{&first, "the first decision", func() bool { return some > 0 }},
			{&decided, "each has a decision", func() bool { return some == o.workloads }},
			{&measured, "each has a measured one", func() bool { return of == o.workloads }},
		} {
			if m.at.IsZero() && m.yet() {
				err = errors.Join(err, m.record(p))
				progress("%s after %.1fs, %.1fs of processor time and with %d MiB (load %s)", m.what, m.at.Sub(began).Seconds(),
					m.cpu.Seconds(), m.rss/memory.MiB, load()) // a later milestone may never be reached
			}
		}
		if now := time.Now(); now.Sub(printed) > 10*time.Second {
			printed = now
			progress("after %s: of %d workloads %d have a decision, %d a measured one", now.Sub(began).Round(time.Second),
				o.workloads, some, of)
		}
		return !measured.at.IsZero(), err
	})
	if err != nil {
		return nil, err
	}
	since := func(t time.Time) float64 { return t.Sub(began).Seconds() }
	firstAt, lastAt, firstMeasured, lastMeasured := a.times()
	fmt.Printf("what=start gomemlimit=%s nodes=%d workloads=%d pods=%d load_before=%s load_after=%s leader_s=%.1f "+
		"ready_s=%.1f "+
		"pods_known_s=%.1f first_decision_s=%.1f first_measured_s=%.1f all_decided_s=%.1f all_measured_s=%.1f "+
		"cpu_s_pods_known=%.1f cpu_s_first_decision=%.1f cpu_s_all_decided=%.1f cpu_s_all_measured=%.1f "+
		"rss_mib_pods_known=%d rss_mib=%d peak_rss_mib=%d api_reads=%d api_writes=%d\n",
		cmp.Or(o.goMemLimit, "none"), o.nodes, o.workloads, w.pods, busy, load(),
		since(p.api.firstAt(http.MethodPost, "leases")), since(ready.at),
		since(synced.at), since(firstAt), since(firstMeasured), since(lastAt), since(lastMeasured),
		synced.cpu.Seconds(), first.cpu.Seconds(), decided.cpu.Seconds(), measured.cpu.Seconds(),
		synced.rss/memory.MiB, measured.rss/memory.MiB, measured.peak/memory.MiB, measured.reads, measured.writes)
	if took := firstAt.Sub(began); took > o.firstDecision {
		late = fmt.Errorf("the first decision took %s, want at most %s", took.Round(time.Second), o.firstDecision)
	}
	return late, nil
}

// standbyPeriod is how long a replica waits for the lease before its memory is read.
const standbyPeriod = 15 * time.Second

// measureTakeover measures a second replica: its memory while it waits for the lease, the histories that the leader
// writes when it is stopped, and the time until the second replica has reconciled each workload once.
func (w *world) measureTakeover(ctx context.Context, leader, next *program) error {
	began, busy := time.Now(), load()
	var ready, synced, drained milestone
	if err := first(ctx, next, &ready, func() bool { return w.ready(ctx) }); err != nil {
		return err
	}
	select {
	case <-time.After(standbyPeriod):
	case <-ctx.Done():
		return ctx.Err()
	}
	waits, err := next.usage()
	if err != nil {
		return err
	}
	fmt.Printf("what=standby workloads=%d pods=%d load_before=%s ready_s=%.1f rss_mib=%d peak_rss_mib=%d cpu_s=%.1f\n",
		len(w.workloads), w.pods, busy, ready.at.Sub(began).Seconds(), waits.rss/memory.MiB, waits.peak/memory.MiB,
		waits.cpu.Seconds())
	if err := w.stop(ctx, leader); err != nil {
		return err
	}
	began, busy = time.Now(), load()
	if err := first(ctx, next, &synced, next.synced); err != nil {
		return err
	}
	q := &queue{world: w}
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		empty, err := q.update(ctx)
		return empty, errors.Join(err, next.alive())
	})
	if err == nil {
		err = drained.record(next)
	}
	if err != nil {
		return err
	}
	fmt.Printf("what=takeover workloads=%d pods=%d load_before=%s load_after=%s pods_known_s=%.1f queue_empty_s=%.1f "+
		"cpu_s_pods_known=%.1f cpu_s=%.1f rss_mib=%d peak_rss_mib=%d api_reads=%d api_writes=%d\n",
		len(w.workloads), w.pods, busy, load(), synced.at.Sub(began).Seconds(), drained.at.Sub(began).Seconds(),
		(synced.cpu - waits.cpu).Seconds(), (drained.cpu - waits.cpu).Seconds(), drained.rss/memory.MiB,
		drained.peak/memory.MiB, drained.reads-waits.reads, drained.writes-waits.writes)
	return nil
}

// first waits until seen returns true, and records the milestone. It fails when the program ends.
func first(ctx context.Context, p *program, r *milestone, seen func() bool) error {
	return wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(context.Context) (bool, error) {
		if err := p.alive(); err != nil || !seen() {
			return false, err
		}
		return true, r.record(p)
	})
}

// stop stops the manager as the kubelet does, and prints how many histories it wrote for the next leader.
func (w *world) stop(ctx context.Context, p *program) error {
	began, busy, before := time.Now(), load(), p.api.count(http.MethodPut, "memorycheckpoints")
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping memfit: %w", err)
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	fmt.Printf("what=stop workloads=%d load_before=%s took_s=%.1f histories_written=%d\n", len(w.workloads), busy,
		time.Since(began).Seconds(), p.api.count(http.MethodPut, "memorycheckpoints")-before)
	return nil
}

// ready calls the manager's readiness probe, as the kubelet does.
func (w *world) ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.probes+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

// synced reports whether every existing pod is assigned to its workload and reconciles have started: controller-runtime
// logs that when the source of a controller has synced.
func (p *program) synced() bool {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return false
	}
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, []byte(`"logger":"workload"`)) && bytes.Contains(line, []byte("Starting workers")) {
			return true
		}
	}
	return false
}

// load returns the load average of the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
