// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	vpav1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"

	"github.com/memfit/memfit/internal/memory"
)

// runOperators starts both operators and waits until each has a recommendation for every workload.
func (w *world) runOperators(ctx context.Context, t *testing.T, o options) ([]*program, error) {
	t.Helper()
	memfit, err := w.watchStatuses(ctx)
	if err != nil {
		return nil, err
	}
	if w.metrics, err = freeAddress(); err != nil {
		return nil, err
	}
	dir := t.TempDir()
	operators := []*program{
		w.launch(t, dir, "memfit", o.memfit, "--metrics-bind-address="+w.metrics, "--metrics-secure=false",
			"--health-probe-bind-address=0", "--kubelet-insecure-skip-verify", "--zap-log-level=error"),
		w.launch(t, dir, "vpa-recommender", o.vpa, "--kubeconfig="+kubeconfig(dir, "vpa-recommender"),
			"--address=127.0.0.1:0", "--v=0"),
	}
	began, last := time.Now(), ""
	progress("memfit and VPA's recommender run; waiting for their recommendations for all %d workloads", o.workloads)
	err = wait.PollUntilContextCancel(ctx, 5*time.Second, true, func(ctx context.Context) (bool, error) {
		for _, r := range operators {
			if err := r.alive(); err != nil {
				return false, err
			}
		}
		_, measured, _, err := memfit.counts()
		answered, listing := w.answered(ctx)
		if text := fmt.Sprintf("memfit %d, VPA %d", measured, answered); text != last {
			last = text
			progress("after %s: %s", time.Since(began).Round(time.Second), text)
		}
		return measured == o.workloads && answered == o.workloads, errors.Join(err, listing)
	})
	if err != nil {
		for _, r := range operators {
			err = errors.Join(err, r.logTail())
		}
	}
	return operators, err
}

// answered counts the VerticalPodAutoscalers with a recommendation.
func (w *world) answered(ctx context.Context) (n int, err error) {
	var autoscalers vpav1.VerticalPodAutoscalerList
	if err := w.client.List(ctx, &autoscalers); err != nil {
		return 0, fmt.Errorf("listing VerticalPodAutoscalers: %w", err)
	}
	for i := range autoscalers.Items {
		if autoscalers.Items[i].Status.Recommendation != nil {
			n++
		}
	}
	return n, nil
}

// measureOperators measures both for o.measure and prints what they used; it fails when memfit did not read all pods.
func (w *world) measureOperators(ctx context.Context, o options, operators []*program) error {
	progress("measuring for %s", o.measure)
	samples, err := w.samplesTaken(ctx)
	if err != nil {
		return err
	}
	before := make([]usage, len(operators))
	for i, r := range operators {
		if before[i], err = r.usage(); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(o.measure):
	}
	minutes := o.measure.Minutes()
	for i, r := range operators {
		if err := r.alive(); err != nil {
			return err
		}
		t, err := r.usage()
		if err != nil {
			return err
		}
		fmt.Printf("server=%s nodes=%d pods=%d rss_mib=%d peak_rss_mib=%d cpu_s=%.1f minutes=%.1f cpu_percent_of_core=%.1f "+
			"api_reads=%d api_writes=%d writes_per_minute=%.0f rss_bytes_per_container=%d\n",
			r.name, o.nodes, w.pods, t.rss/memory.MiB, t.peak/memory.MiB, (t.cpu - before[i].cpu).Seconds(), minutes,
			(t.cpu-before[i].cpu).Seconds()/o.measure.Seconds()*100,
			t.reads-before[i].reads, t.writes-before[i].writes, float64(
				t.writes-before[i].writes,
			)/minutes, int64(t.rss)/int64(w.pods))
	}
	return w.check(ctx, o, samples)
}

// check fails unless memfit has read every pod meanwhile, by its own count of samples. VPA reads all pods in one list.
func (w *world) check(ctx context.Context, o options, before float64) error {
	after, err := w.samplesTaken(ctx)
	if err != nil {
		return err
	}
	cycles := (after - before) / float64(w.pods)
	if least := math.Floor(o.measure.Seconds()/15) - 1; cycles < least {
		return fmt.Errorf("memfit took %.1f samples of each of %d pods, want at least %.0f", cycles, w.pods, least)
	}
	fmt.Printf("checked: memfit took %.1f samples of each pod\n", cycles)
	return nil
}
