// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/internal/memory"
)

const (
	// scrapeInterval is long because the metrics of 10,000 workloads are work for the manager.
	scrapeInterval = 5 * time.Second
	// drainTimeout bounds the wait for a manager that is behind; its state is then reported.
	drainTimeout = 10 * time.Minute
)

// measureRollout replaces pods by pods of a new template as fast as the API server allows, and reports memfit's lag.
// behind is an error when the lag exceeds o.behind.
func (w *world) measureRollout(ctx context.Context, o options, p *program, a *statuses) (behind, err error) {
	chosen := w.workloads[:min(len(w.workloads), o.rollout/o.replicas)]
	progress("waiting until nothing is queued, then replacing %d pods", len(chosen)*o.replicas)
	q := &queue{world: w}
	if err := wait.PollUntilContextCancel(ctx, scrapeInterval, true, q.update); err != nil {
		return nil, err
	}
	before, busy := q.newest, load()
	*q = queue{world: w, newest: before}
	start, err := p.usage()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for _, n := range w.nodes {
		n.resetGap(began)
	}
	done, err := w.replace(ctx, chosen, a, q)
	if err != nil {
		return nil, err
	}
	ended := time.Now()
	progress("replaced in %s; waiting for memfit's statuses", ended.Sub(began).Round(time.Second))
	var drained time.Time
	left := 0
	err = wait.PollUntilContextCancel(ctx, scrapeInterval, true, func(ctx context.Context) (bool, error) {
		empty, err := q.update(ctx)
		if empty && drained.IsZero() {
			drained = time.Now()
		}
		var failed error
		_, _, left, failed = a.counts()
		progress("after %s: %.0f workloads queued, %d without a status of all pods", time.Since(ended).Round(time.Second),
			q.newest.depth(), left)
		done := left == 0 && !drained.IsZero() || time.Since(ended) > drainTimeout
		return done, errors.Join(err, failed, p.alive())
	})
	if err != nil {
		return nil, err
	}
	after, err := p.usage()
	if err != nil {
		return nil, err
	}
	lags, last := a.lags(done)
	r := result{
		drained: sinceOr(drained, ended), known: max(0, last.Sub(ended)), left: left,
		silence: w.silence(time.Now()), givenUp: q.change(before, "memfit_reconciles_timed_out_total", ""),
	}
	elapsed := time.Since(began)
	fmt.Printf("what=rollout workloads=%d replicas=%d pods=%d of=%d load_before=%s load_after=%s replaced_s=%.1f "+
		"pods_per_s=%.0f deepest_queue=%.0f queue_empty_s=%.1f all_known_s=%.1f not_known=%d "+
		"known_lag_p50_s=%.1f known_lag_p99_s=%.1f known_lag_max_s=%.1f longest_wait_below_s=%g longest_reconcile_s=%.1f "+
		"cpu_s=%.1f seconds=%.0f cpu_percent_of_core=%.1f rss_mib=%d peak_rss_mib=%d api_writes=%d reconcile_errors=%.0f "+
		"given_up=%.0f scrape_errors=%.0f samples_per_pod_and_minute=%.2f longest_silence_of_a_node_s=%.1f\n",
		len(chosen), o.replicas, len(chosen)*o.replicas, w.pods, busy, load(), ended.Sub(began).Seconds(),
		float64(len(chosen)*o.replicas)/ended.Sub(began).Seconds(), q.deepest, r.drained.Seconds(), r.known.Seconds(), left,
		lags.at(50).Seconds(), lags.at(99).Seconds(), lags.at(100).Seconds(), q.newest.longestWait(before), q.slowest,
		(after.cpu - start.cpu).Seconds(), elapsed.Seconds(), (after.cpu-start.cpu).Seconds()/elapsed.Seconds()*100,
		after.rss/memory.MiB, after.peak/memory.MiB, after.writes-start.writes,
		q.change(before, "controller_runtime_reconcile_errors_total", workloadController),
		r.givenUp,
		q.change(before, "memfit_usage_scrape_errors_total", ""),
		q.change(before, "memfit_usage_samples_total", "")/float64(w.pods)/elapsed.Minutes(), r.silence.Seconds())
	return r.behind(o.behind), nil
}

// sinceOr returns the time from ended to t, or to now when t is zero.
func sinceOr(t, ended time.Time) time.Duration {
	if t.IsZero() {
		t = time.Now()
	}
	return t.Sub(ended)
}

// result has the measurements that decide whether memfit fell behind.
type result struct {
	// drained is the time from the last new pod to an empty queue, known to the last status of all pods.
	drained, known time.Duration
	// left is the number of workloads without a status of all pods.
	left int
	// silence is the longest time between two readings of a node with pods.
	silence time.Duration
	givenUp float64
}

// behind returns an error if within most the queue was not empty, a status lacked new pods, or a node was not read, or
// if a reconcile was given up.
func (r result) behind(most time.Duration) error {
	var all []error
	for what, took := range map[string]time.Duration{
		"emptying the queue": r.drained, "the last status of new pods": r.known, "the next reading of a node": r.silence,
	} {
		if took > most {
			all = append(all, fmt.Errorf("%s took %s, want at most %s", what, took.Round(time.Second), most))
		}
	}
	if r.left > 0 || r.givenUp > 0 {
		all = append(all, fmt.Errorf("%d workloads have no status of all new pods; %.0f reconciles were given up", r.left,
			r.givenUp))
	}
	return errors.Join(all...)
}

// silence returns the longest time between two readings of a node with pods.
func (w *world) silence(now time.Time) time.Duration {
	var longest time.Duration
	for _, n := range w.nodes {
		longest = max(longest, n.longestGap(now))
	}
	return longest
}

// queue is the workqueue of workloads, from the manager's metrics.
type queue struct {
	*world
	newest  metrics
	deepest float64
	// slowest is the longest observed duration of a reconcile, in seconds.
	slowest float64
}

// update reads the metrics, and reports whether nothing is queued.
func (q *queue) update(ctx context.Context) (empty bool, err error) {
	m, err := q.scrape(ctx)
	if err != nil {
		return false, err
	}
	q.newest, q.deepest = m, max(q.deepest, m.depth())
	q.slowest = max(q.slowest, m.sum("workqueue_longest_running_processor_seconds", workloadController))
	return m.depth() == 0, nil
}

// change returns the increase of a counter.
func (q *queue) change(before metrics, name, label string) float64 {
	return q.newest.sum(name, label) - before.sum(name, label)
}

// replace rolls out workloads, and returns the time at which each was done. Meanwhile it updates q.
func (w *world) replace(
	ctx context.Context, chosen []workload, a *statuses, q *queue,
) (map[types.NamespacedName]time.Time, error) {
	var mu sync.Mutex
	done := map[types.NamespacedName]time.Time{}
	var pods atomic.Int64
	jobs, ctx := errgroup.WithContext(ctx)
	jobs.SetLimit(writers + 1)
	all := make(chan struct{})
	jobs.Go(func() error {
		return wait.PollUntilContextCancel(ctx, scrapeInterval, true, func(ctx context.Context) (bool, error) {
			select {
			case <-all:
				return true, nil
			default:
				_, err := q.update(ctx)
				progress("%d pods replaced, %.0f workloads are queued", pods.Load(), q.newest.depth())
				return false, err
			}
		})
	})
	var left sync.WaitGroup
	left.Add(len(chosen))
	go func() {
		left.Wait()
		close(all)
	}()
	for i := range chosen {
		jobs.Go(func() error {
			defer left.Done()
			if err := w.roll(ctx, &chosen[i], a, &pods); err != nil {
				return fmt.Errorf("rolling out workload %d: %w", i, err)
			}
			mu.Lock()
			defer mu.Unlock()
			done[chosen[i].recommendation()] = time.Now()
			return nil
		})
	}
	return done, jobs.Wait()
}

// roll replaces the pods of one workload as a Deployment with maxSurge 100 % does: it creates all new pods, then
// deletes the old ones. The new pods have a larger limit, by which a status of them is recognized.
func (w *world) roll(ctx context.Context, of *workload, a *statuses, count *atomic.Int64) error {
	limit := limitOf(of.index) + 64*memory.MiB
	set := replicaSet(of.deployment, nextHash, limit)
	if err := w.client.Create(ctx, set); err != nil {
		return err
	}
	a.expect(of.recommendation(), expected{limit: limit, governed: len(of.pods)})
	like := w.pod(of.index, set)
	at := func(n int) *node { return w.nodes[(of.index*len(of.pods)+n)%len(w.nodes)] }
	for n := range of.pods {
		pod := replica(like, n, at(n))
		if err := w.client.Create(ctx, pod); err != nil {
			return err
		}
		class := pod.Status.QOSClass
		setRunning(pod, time.Now())
		pod.Status.QOSClass = class
		if err := w.client.Status().Update(ctx, pod); err != nil {
			return err
		}
		at(n).swap(nil, pod)
	}
	for n, old := range of.pods {
		if err := w.client.Delete(ctx, old, client.GracePeriodSeconds(0)); err != nil {
			return err
		}
		at(n).swap(old, nil)
		count.Add(1)
	}
	return nil
}

// swap removes a pod from a node and adds another; either may be nil.
func (n *node) swap(old, next *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old != nil {
		n.pods = slices.DeleteFunc(n.pods, func(p *corev1.Pod) bool { return p.UID == old.UID })
	}
	if next != nil {
		n.pods = append(n.pods, next)
	}
}

// lags are times from the end of a workload's rollout to its expected status, sorted.
type lags []time.Duration

// at returns a percentile of the lags.
func (l lags) at(percent int) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[(len(l)-1)*percent/100]
}

// lags returns the lags of the observed statuses, and the time of the last one.
func (a *statuses) lags(done map[types.NamespacedName]time.Time) (all lags, last time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, at := range a.observed {
		all = append(all, max(0, at.Sub(done[key])))
		if at.After(last) {
			last = at
		}
	}
	slices.Sort(all)
	return all, last
}
