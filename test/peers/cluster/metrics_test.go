// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metrics are some of what the manager reports of itself, by name.
type metrics map[string]*dto.MetricFamily

// about are the metrics that are read; those of every workload would be a hundred thousand more.
var about = [][]byte{
	[]byte("workqueue_"), []byte("controller_runtime_reconcile_errors_total"), []byte("memfit_reconciles_timed_out_total"),
	[]byte("memfit_usage_"), []byte("memfit_admission_"),
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
	var wanted bytes.Buffer
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		series := bytes.TrimPrefix(bytes.TrimPrefix(lines.Bytes(), []byte("# TYPE ")), []byte("# HELP "))
		if slices.ContainsFunc(about, func(prefix []byte) bool { return bytes.HasPrefix(series, prefix) }) {
			wanted.Write(append(lines.Bytes(), '\n'))
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&wanted)
	return families, errors.Join(err, lines.Err())
}

// of are the series of a name with a value of one of their labels; empty: whatever their labels.
func (m metrics) of(name, value string) (all []*dto.Metric) {
	for _, series := range m[name].GetMetric() {
		is := func(l *dto.LabelPair) bool { return l.GetValue() == value }
		if value == "" || slices.ContainsFunc(series.GetLabel(), is) {
			all = append(all, series)
		}
	}
	return all
}

// sum adds up the series of a counter or gauge.
func (m metrics) sum(name, value string) (sum float64) {
	for _, series := range m.of(name, value) {
		sum += series.GetCounter().GetValue() + series.GetGauge().GetValue()
	}
	return sum
}

// ofWorkloads is the name of the controller of workloads.
const ofWorkloads = "workload"

// depth is how many workloads wait for their reconcile, whatever their priority.
func (m metrics) depth() float64 { return m.sum("workqueue_depth", ofWorkloads) }

// waits are the numbers of waits in the queue of workloads that were not longer than a bound, by bound.
func (m metrics) waits() map[float64]uint64 {
	all := map[float64]uint64{}
	for _, series := range m.of("workqueue_queue_duration_seconds", ofWorkloads) {
		h := series.GetHistogram()
		all[math.Inf(1)] += h.GetSampleCount()
		for _, b := range h.GetBucket() {
			if !math.IsInf(b.GetUpperBound(), 1) {
				all[b.GetUpperBound()] += b.GetCumulativeCount()
			}
		}
	}
	return all
}

// longestWait is the upper bound of the bucket that the longest wait in the queue since an earlier reading fell into.
func (m metrics) longestWait(before metrics) float64 {
	now, then, least := m.waits(), before.waits(), math.Inf(1)
	for bound, n := range now {
		if n-then[bound] >= now[math.Inf(1)]-then[math.Inf(1)] {
			least = min(least, bound)
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
	taken := m.sum("memfit_usage_samples_total", "kubelet")
	if taken == 0 {
		return 0, errors.New("memfit has taken no samples from kubelets")
	}
	return taken, nil
}
