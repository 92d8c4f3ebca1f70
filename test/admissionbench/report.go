// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// medians takes the median of each number over the rounds.
func medians(rounds []result) result {
	r := rounds[0]
	r.p50 = median(rounds, func(r result) time.Duration { return r.p50 })
	r.p99 = median(rounds, func(r result) time.Duration { return r.p99 })
	r.perSecond = median(rounds, func(r result) float64 { return r.perSecond })
	r.cpuPerRequest = median(rounds, func(r result) time.Duration { return r.cpuPerRequest })
	r.rss = slices.MaxFunc(rounds, func(a, b result) int { return cmp.Compare(a.rss, b.rss) }).rss
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

// report writes a line per server and case, what memfit says of itself, and the ratios.
func report(out io.Writer, servers []*server, results []result) error {
	of := func(server, name string) (result, bool) {
		i := slices.IndexFunc(results, func(r result) bool { return r.server == server && r.name == name })
		if i < 0 {
			return result{}, false
		}
		return results[i], true
	}
	for _, r := range results {
		fmt.Fprintf(out, "server=%s case=%s p50_us=%d p99_us=%d rps=%.0f rss_mib=%d cpu_us=%d\n",
			r.server, r.name, r.p50.Microseconds(), r.p99.Microseconds(), r.perSecond, r.rss>>20, r.cpuPerRequest.Microseconds())
	}
	for _, s := range servers {
		if s.metrics == "" {
			continue
		}
		if err := reportOwn(out, s); err != nil {
			return fmt.Errorf("reading what %s says of itself: %w", s.name, err)
		}
	}
	memfit, _ := of("memfit", "governed")
	noop, _ := of("noop", "governed")
	vpa, measured := of("vpa", "governed")
	if !measured {
		fmt.Fprintf(out, "throughput_ratio_vs_vpa=not_measured p50_ratio_vs_noop=%.2f\n", ratio(memfit.p50, noop.p50))
		return nil
	}
	if m, ok := of("memfit", "ungoverned"); ok {
		v, _ := of("vpa", "ungoverned")
		n, _ := of("noop", "ungoverned")
		fmt.Fprintf(out, "ungoverned: throughput_ratio_vs_vpa=%.2f cpu_ratio_vs_vpa=%.2f p50_ratio_vs_noop=%.2f\n", m.perSecond/v.perSecond, ratio(v.cpuPerRequest, m.cpuPerRequest), ratio(m.p50, n.p50))
	}
	fmt.Fprintf(out, "governed: cpu_ratio_vs_vpa=%.2f\n", ratio(vpa.cpuPerRequest, memfit.cpuPerRequest))
	fmt.Fprintf(out, "throughput_ratio_vs_vpa=%.2f p50_ratio_vs_noop=%.2f\n", memfit.perSecond/vpa.perSecond, ratio(memfit.p50, noop.p50))
	return nil
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

var bucket = regexp.MustCompile(`^memfit_admission_duration_seconds_(bucket|sum|count)\{(?:le="([^"]+)",)?result="(\w+)"(?:,le="([^"]+)")?\} (\S+)$`)

// reportOwn reads memfit's own histogram: the time of the handler alone, for every request of the run.
func reportOwn(out io.Writer, s *server) error {
	resp, err := http.Get(s.metrics)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	type bound struct{ le, count float64 }
	bounds, sums, counts := map[string][]bound{}, map[string]float64{}, map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		m := bucket.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		value, err := strconv.ParseFloat(m[5], 64)
		if err != nil {
			return err
		}
		switch m[1] {
		case "sum":
			sums[m[3]] = value
		case "count":
			counts[m[3]] = value
		default:
			le, err := strconv.ParseFloat(strings.Replace(m[2]+m[4], "+Inf", "Inf", 1), 64)
			if err != nil {
				return err
			}
			bounds[m[3]] = append(bounds[m[3]], bound{le, value})
		}
	}
	for _, name := range []string{"governed", "ungoverned"} {
		total := counts[name]
		if total == 0 {
			return fmt.Errorf("it has not counted any %s pod", name)
		}
		at := slices.IndexFunc(bounds[name], func(b bound) bool { return b.count >= 0.99*total })
		most := math.Inf(1)
		if at >= 0 {
			most = bounds[name][at].le
		}
		fmt.Fprintf(out, "handler=%s case=%s requests=%.0f mean_us=%.0f p99_us_at_most=%.0f\n", s.name, name, total, sums[name]/total*1e6, most*1e6)
	}
	return lines.Err()
}
