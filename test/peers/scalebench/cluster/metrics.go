// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// metrics are some of what the manager reports of itself, by series.
type metrics map[string]float64

// about are the metrics that are read; those of every workload would be a hundred thousand more.
var about = []string{
	"workqueue_", "controller_runtime_reconcile_errors_total", "memfit_reconciles_given_up_total", "memfit_usage_",
}

// scrape reads memfit's metrics.
func (w *world) scrape(ctx context.Context) (metrics, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.metrics+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "identity") // to compress megabytes would be work of the manager's
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reading memfit's metrics: %w", err)
	}
	defer resp.Body.Close()
	all := metrics{}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		series, text, found := strings.Cut(lines.Text(), "} ")
		if !found {
			series, text, found = strings.Cut(lines.Text(), " ")
		}
		if !found || !wanted(series) {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", series, err)
		}
		all[series] = value
	}
	return all, lines.Err()
}

func wanted(series string) bool {
	for _, prefix := range about {
		if strings.HasPrefix(series, prefix) {
			return true
		}
	}
	return false
}

// sum adds up the series of a name with a label, such as `name="workload"`; empty: whatever their labels.
func (m metrics) sum(name, label string) float64 {
	var sum float64
	for series, value := range m {
		if n, labels, _ := strings.Cut(series, "{"); n == name && strings.Contains(labels, label) {
			sum += value
		}
	}
	return sum
}

const ofWorkloads = `name="workload"`

// depth is how many workloads wait for their reconcile, whatever their priority.
func (m metrics) depth() float64 { return m.sum("workqueue_depth", ofWorkloads) }

// longestWait is the upper bound of the bucket that the longest wait in the queue since an earlier reading fell into.
func (m metrics) longestWait(before metrics) float64 {
	const name = "workqueue_queue_duration_seconds"
	all := m.sum(name+"_count", ofWorkloads) - before.sum(name+"_count", ofWorkloads)
	least := math.Inf(1)
	for series, value := range m {
		_, bound, found := strings.Cut(series, `le="`)
		if !found || !strings.HasPrefix(series, name+"_bucket{") || !strings.Contains(series, ofWorkloads) {
			continue
		}
		bound, _, _ = strings.Cut(bound, `"`)
		if le, err := strconv.ParseFloat(bound, 64); err == nil && value-before[series] >= all {
			least = min(least, le)
		}
	}
	return least
}

// samplesTaken is memfit's own count.
func (w *world) samplesTaken(ctx context.Context) (float64, error) {
	m, err := w.scrape(ctx)
	if err != nil {
		return 0, err
	}
	taken := m.sum("memfit_usage_samples_total", `source="kubelet"`)
	if taken == 0 {
		return 0, errors.New("memfit has taken no samples from kubelets")
	}
	return taken, nil
}
