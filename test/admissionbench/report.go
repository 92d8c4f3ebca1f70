// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// summary takes the median of each number over the rounds, but the mean of processor time: a server with a large cache
// collects garbage once in tens of thousands of requests, and all of them pay for it, not only those of the round in
// which it happens.
func (of *series) summary() result {
	r := of.rounds[0]
	r.p50 = median(of.rounds, func(r result) time.Duration { return r.p50 })
	r.p99 = median(of.rounds, func(r result) time.Duration { return r.p99 })
	r.perSecond = median(of.rounds, func(r result) float64 { return r.perSecond })
	r.cpuPerRequest, r.clientPerRequest = 0, 0
	for _, round := range of.rounds {
		r.cpuPerRequest += round.cpuPerRequest / time.Duration(len(of.rounds))
		r.clientPerRequest += round.clientPerRequest / time.Duration(len(of.rounds))
	}
	r.clientBusy = median(of.rounds, func(r result) float64 { return r.clientBusy })
	r.rss = slices.MaxFunc(of.rounds, func(a, b result) int { return cmp.Compare(a.rss, b.rss) }).rss
	return r
}

func median[T cmp.Ordered](rounds []result, of func(result) T) T {
	values := make([]T, len(rounds))
	for i, r := range rounds {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// report writes a line per server, case and protocol, what memfit reports about itself, and the ratios.
func report(out io.Writer, servers []*server, all []*series) error {
	for _, of := range all {
		r := of.summary()
		fmt.Fprintf(out, "server=%s case=%s protocol=%s p50_us=%d p99_us=%d rps=%.0f rss_mib=%d cpu_us=%d client_cpu_us=%d "+
			"client_busy=%.2f\n",
			r.server, r.name, r.protocol, r.p50.Microseconds(), r.p99.Microseconds(), r.perSecond, r.rss>>20,
			r.cpuPerRequest.Microseconds(), r.clientPerRequest.Microseconds(), r.clientBusy)
	}
	for _, s := range servers {
		if s.metrics == "" {
			continue
		}
		if err := reportOwn(out, s); err != nil {
			return fmt.Errorf("reading the metrics of %s: %w", s.name, err)
		}
	}
	return ratios(out, all)
}

// ratios writes how memfit compares. A ratio of times and rates is the median over the rounds of the ratio within a
// round, because what else the machine did was much the same within one.
func ratios(out io.Writer, all []*series) error {
	rate := func(r result) float64 { return r.perSecond }
	cpu := func(a, b *series) float64 {
		return float64(b.summary().cpuPerRequest) / float64(a.summary().cpuPerRequest)
	}
	least, slower, measured := math.Inf(1), 0.0, true
	for _, name := range []string{governed, ungoverned} {
		memfit, noop, vpa := find(all, "memfit", name, http1), find(all, "noop", name, http1), find(all, "vpa", name, http1)
		p50 := 1 / ratio(memfit, noop, func(r result) float64 { return 1 / float64(r.p50) })
		slower = max(slower, p50)
		if measured = vpa != nil; !measured {
			continue
		}
		byRate := ratio(memfit, vpa, rate)
		fmt.Fprintf(out, "case=%s throughput_ratio_vs_vpa=%.2f cpu_ratio_vs_vpa=%.2f", name, byRate, cpu(memfit, vpa))
		if over := find(all, "vpa", name, http2); over != nil {
			fmt.Fprintf(
				out, " cpu_ratio_vs_vpa_over_h2=%.2f cpu_ratio_over_h2_vs_vpa_over_h2=%.2f", cpu(memfit, over),
				cpu(find(all, "memfit", name, http2), over),
			)
		}
		fmt.Fprintf(out, " cpu_ratio_vs_noop=%.2f p50_ratio_vs_noop=%.2f\n", cpu(memfit, noop), p50)
		least = min(least, byRate)
	}
	if !measured {
		fmt.Fprintf(out, "throughput_ratio_vs_vpa=not_measured p50_ratio_vs_noop=%.2f\n", slower)
		return nil
	}
	fmt.Fprintf(out, "throughput_ratio_vs_vpa=%.2f p50_ratio_vs_noop=%.2f\n", least, slower) // the worse case of the two
	return nil
}

func find(all []*series, server, name, protocol string) *series {
	i := slices.IndexFunc(all, func(of *series) bool {
		return of.server.name == server && of.bc.name == name && of.protocol == protocol
	})
	if i < 0 {
		return nil
	}
	return all[i]
}

// ratio is how many times better a is than b.
func ratio(a, b *series, better func(result) float64) float64 {
	values := make([]float64, len(a.rounds))
	for i := range values {
		values[i] = better(a.rounds[i]) / better(b.rounds[i])
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// reportOwn reads memfit's own histogram: the time of the handler alone, for every request of the run.
func reportOwn(out io.Writer, s *server) error {
	resp, err := http.Get(s.metrics)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return err
	}
	for _, m := range families["memfit_admission_duration_seconds"].GetMetric() {
		h, name := m.GetHistogram(), m.GetLabel()[0].GetValue()
		total, most := float64(h.GetSampleCount()), math.Inf(1)
		if name != governed && name != ungoverned || total == 0 {
			continue
		}
		for _, b := range h.GetBucket() {
			if float64(b.GetCumulativeCount()) >= 0.99*total {
				most = min(most, b.GetUpperBound())
			}
		}
		fmt.Fprintf(
			out, "handler=%s case=%s requests=%.0f mean_us=%.0f p99_us_at_most=%.0f\n", s.name, name, total,
			h.GetSampleSum()/total*1e6, most*1e6,
		)
	}
	return nil
}
