// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	vpav1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// compete starts both operators at the same time and waits until each knows every workload.
func (w *world) compete(ctx context.Context, o options, dir string) ([]*program, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	w.metrics = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	var rivals []*program
	for _, command := range [][]string{
		{o.memfit, "--metrics-bind-address=" + w.metrics, "--metrics-secure=false", "--health-probe-bind-address=0",
			"--kubelet-insecure-skip-verify", "--zap-log-level=error"},
		{o.vpa, "--kubeconfig=" + kubeconfig(dir, o.vpa), "--address=127.0.0.1:0", "--v=0"},
	} {
		p, err := w.launch(ctx, dir, command[0], command[1:]...)
		if err != nil {
			return rivals, err
		}
		rivals = append(rivals, p)
	}
	began, last := time.Now(), ""
	say("memfit and VPA's recommender run; waiting until both have looked at all %d workloads", o.workloads)
	err = wait.PollUntilContextCancel(ctx, 5*time.Second, true, func(ctx context.Context) (bool, error) {
		for _, r := range rivals {
			if err := r.alive(); err != nil {
				return false, err
			}
		}
		d, err := w.seen(ctx)
		if text := d.String(); text != last {
			last = text
			say("after %s: %s", time.Since(began).Round(time.Second), text)
		}
		return d.complete(o, w.pods), err
	})
	if err != nil {
		for _, r := range rivals {
			err = errors.Join(err, r.said())
		}
	}
	return rivals, err
}

// done is what both have got to.
type done struct {
	// governed pods, and workloads with samples and with a checkpoint, are memfit's.
	governed, sampled, remembered int
	// answered are VerticalPodAutoscalers with a recommendation, checkpoints what VPA remembers.
	answered, checkpoints int
}

func (d done) String() string {
	return fmt.Sprintf("memfit governs %d pods, has samples of %d workloads and remembers %d; VPA has answered for %d "+
		"and remembers %d",
		d.governed, d.sampled, d.remembered, d.answered, d.checkpoints)
}

func (d done) complete(o options, pods int) bool {
	return d == done{
		governed: pods, sampled: o.workloads, remembered: o.workloads, answered: o.workloads, checkpoints: o.workloads,
	}
}

// seen says how far both are, by what they have written.
func (w *world) seen(ctx context.Context) (d done, err error) {
	var recommendations v1alpha1.MemoryRecommendationList
	var remembered v1alpha1.MemoryCheckpointList
	var autoscalers vpav1.VerticalPodAutoscalerList
	var checkpoints vpav1.VerticalPodAutoscalerCheckpointList
	for _, list := range []client.ObjectList{&recommendations, &remembered, &autoscalers, &checkpoints} {
		if err := w.client.List(ctx, list); err != nil {
			return d, fmt.Errorf("looking at what was written: %w", err)
		}
	}
	d.remembered, d.checkpoints = len(remembered.Items), len(checkpoints.Items)
	for i := range recommendations.Items {
		status := &recommendations.Items[i].Status
		if status.Coverage != nil {
			d.governed += int(status.Coverage.Governed)
		}
		if len(status.Containers) == 1 && status.Containers[0].Evidence.Samples > 0 {
			d.sampled++
		}
	}
	for i := range autoscalers.Items {
		if autoscalers.Items[i].Status.Recommendation != nil {
			d.answered++
		}
	}
	return d, nil
}

// report measures both for a while and reports what they took; an error when they have not done what they should have.
func (w *world) report(ctx context.Context, o options, rivals []*program) error {
	say("measuring for %s", o.measure)
	samples, err := w.samplesTaken(ctx)
	if err != nil {
		return err
	}
	before := make([]taken, len(rivals))
	for i, r := range rivals {
		if before[i], err = r.taken(); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(o.measure):
	}
	minutes := o.measure.Minutes()
	for i, r := range rivals {
		if err := r.alive(); err != nil {
			return err
		}
		t, err := r.taken()
		if err != nil {
			return err
		}
		fmt.Printf("server=%s nodes=%d pods=%d rss_mib=%d peak_rss_mib=%d cpu_s=%.1f minutes=%.1f cpu_percent_of_core=%.1f "+
			"api_reads=%d api_writes=%d writes_per_minute=%.0f rss_bytes_per_container=%d\n",
			r.name, o.nodes, w.pods, t.rss/memory.MiB, t.most/memory.MiB, (t.cpu - before[i].cpu).Seconds(), minutes,
			(t.cpu-before[i].cpu).Seconds()/o.measure.Seconds()*100,
			t.reads-before[i].reads, t.writes-before[i].writes, float64(
				t.writes-before[i].writes,
			)/minutes, int64(t.rss)/int64(w.pods))
	}
	return w.check(ctx, o, samples)
}

// check fails unless both have really worked on everything. VPA reads all pods in one list; memfit counts the samples
// that it reads.
func (w *world) check(ctx context.Context, o options, before float64) error {
	d, err := w.seen(ctx)
	if err != nil {
		return err
	}
	after, err := w.samplesTaken(ctx)
	if err != nil {
		return err
	}
	cycles := (after - before) / float64(w.pods)
	if least := math.Floor(o.measure.Seconds()/15) - 1; !d.complete(o, w.pods) || cycles < least {
		return fmt.Errorf(
			"not everything was looked at: %v; of %d pods memfit took %.1f samples each, at least %.0f were due", d, w.pods,
			cycles, least,
		)
	}
	fmt.Printf("checked: %v, and took %.1f samples of each pod\n", d, cycles)
	return nil
}
