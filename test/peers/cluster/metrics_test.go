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

// metrics are some of the manager's metrics, by name.
type metrics map[string]*dto.MetricFamily

// metricPrefixes select the metrics to parse, and omit a hundred thousand metrics of workloads.
var metricPrefixes = [][]byte{
	[]byte("workqueue_"), []byte("controller_runtime_reconcile_errors_total"), []byte("memfit_reconciles_timed_out_total"),
	[]byte("memfit_usage_"), []byte("memfit_admission_"),
}

// scrape reads memfit's metrics.
func (w *world) scrape(ctx context.Context) (metrics, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.metrics+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "identity") // compression would be additional work for the manager
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
		if slices.ContainsFunc(metricPrefixes, func(prefix []byte) bool { return bytes.HasPrefix(series, prefix) }) {
			wanted.Write(append(lines.Bytes(), '\n'))
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&wanted)
	return families, errors.Join(err, lines.Err())
}

// of returns the series of a name with a label value; "": all series of the name.
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

// workloadController is the name of the controller of workloads.
const workloadController = "workload"

// depth returns how many workloads wait for their reconcile, at all priorities.
func (m metrics) depth() float64 { return m.sum("workqueue_depth", workloadController) }

// waits returns the cumulative counts of waiting times in the queue of workloads, by upper bound in seconds.
func (m metrics) waits() map[float64]uint64 {
	all := map[float64]uint64{}
	for _, series := range m.of("workqueue_queue_duration_seconds", workloadController) {
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

// longestWait returns the upper bound, in seconds, of the longest wait in the queue since an earlier reading.
func (m metrics) longestWait(before metrics) float64 {
	now, then, least := m.waits(), before.waits(), math.Inf(1)
	for bound, n := range now {
		if n-then[bound] >= now[math.Inf(1)]-then[math.Inf(1)] {
			least = min(least, bound)
		}
	}
	return least
}

// samplesTaken returns memfit's own count of samples.
func (w *world) samplesTaken(ctx context.Context) (float64, error) {
	m, err := w.scrape(ctx)
	if err != nil {
		return 0, err
	}
	samples := m.sum("memfit_usage_samples_total", "kubelet")
	if samples == 0 {
		return 0, errors.New("memfit has read no samples from kubelets")
	}
	return samples, nil
}
