// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// cpu returns the mean processor time of a request over the rounds: a server with a large cache collects garbage once
// in tens of thousands of requests, and the mean distributes that cost over all rounds.
func (s *series) cpu() (sum time.Duration) {
	for _, r := range s.results {
		sum += r.cpuPerRequest / time.Duration(len(s.results))
	}
	return sum
}

// median returns the median of a number over the rounds.
func median[T cmp.Ordered](s *series, of func(round int) T) T {
	values := make([]T, len(s.results))
	for i := range values {
		values[i] = of(i)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// compare writes a line per server, case and protocol, and memfit's ratios to the other servers. A ratio of times or
// rates is the median of the ratios within a round, because the machine's other load changes little within a round.
func compare(out io.Writer, all []*series) {
	for _, s := range all {
		fmt.Fprintf(out, "server=%s case=%s protocol=%s p50_us=%d p99_us=%d rps=%.0f rss_mib=%d cpu_us=%d client_cpu_us=%d "+
			"client_busy=%.2f\n", s.name, s.of.name, s.protocol,
			median(s, func(i int) int64 { return s.results[i].p50.Microseconds() }),
			median(s, func(i int) int64 { return s.results[i].p99.Microseconds() }),
			median(s, func(i int) float64 { return s.results[i].perSecond }),
			median(s, func(i int) memory.Bytes { return s.results[i].rss })/memory.MiB, s.cpu().Microseconds(),
			median(s, func(i int) int64 { return s.results[i].clientPerRequest.Microseconds() }),
			median(s, func(i int) float64 { return s.results[i].clientBusy }))
	}
	for _, name := range []string{governed, ungoverned} {
		memfit, noop := find(all, "memfit", name, http1), find(all, "noop", name, http1)
		fmt.Fprintf(out, "case=%s cpu_ratio_vs_noop=%.2f p50_ratio_vs_noop=%.2f", name, ratio(noop.cpu(), memfit.cpu()),
			median(memfit, func(i int) float64 { return ratio(memfit.results[i].p50, noop.results[i].p50) }))
		if vpa := find(all, "vpa", name, http1); vpa != nil {
			fmt.Fprintf(out, " throughput_ratio_vs_vpa=%.2f cpu_ratio_vs_vpa=%.2f cpu_ratio_vs_vpa_over_h2=%.2f",
				median(memfit, func(i int) float64 { return memfit.results[i].perSecond / vpa.results[i].perSecond }),
				ratio(vpa.cpu(), memfit.cpu()), ratio(find(all, "vpa", name, http2).cpu(), memfit.cpu()))
		}
		fmt.Fprintln(out)
	}
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func find(all []*series, server, name, protocol string) *series {
	i := slices.IndexFunc(all, func(s *series) bool {
		return s.name == server && s.of.name == name && s.protocol == protocol
	})
	if i < 0 {
		return nil
	}
	return all[i]
}

// reportHandler writes memfit's own histogram of the time of the handler alone, for every request of the run.
func (w *world) reportHandler(ctx context.Context, out io.Writer) error {
	families, err := w.scrape(ctx)
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
		fmt.Fprintf(out, "handler=memfit case=%s requests=%.0f mean_us=%.0f p99_us_at_most=%.0f\n", name, total,
			h.GetSampleSum()/total*1e6, most*1e6)
	}
	return nil
}
