// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// result is the result of one program.
type result struct {
	program
	arm    string
	killed bool
	reason string
	peak   int64
	ended  time.Time
	raises []raise
	alarms map[int64]time.Time
}

// raise is a higher limit that the kernel enforces.
type raise struct {
	at       time.Time
	from, to int64
}

// effectiveDelays returns the times from the last alarm before each raise until the kernel enforced the raise.
func (r *result) effectiveDelays() (all []time.Duration) {
	for _, x := range r.raises {
		var last time.Time
		for _, at := range r.alarms {
			if at.Before(x.at) && at.After(last) {
				last = at
			}
		}
		if !last.IsZero() && x.at.Sub(last) < 10*time.Second {
			all = append(all, x.at.Sub(last))
		}
	}
	return all
}

// lentGiBMinutes returns the sum of all raises times their durations, in GiB-minutes.
func (r *result) lentGiBMinutes() (sum float64) {
	for _, x := range r.raises {
		sum += float64(x.to-x.from) / (1 << 30) * r.ended.Sub(x.at).Minutes()
	}
	return sum
}

func (r *result) line() string {
	return fmt.Sprintf("%-8s %-18s level %5dMi peak %5dMi killed %-5t %-14s alarms %d raises %d effective after %v",
		r.arm, r.name, r.level, r.peak>>20, r.killed, r.reason, len(r.alarms), len(r.raises), r.effectiveDelays())
}

// tables returns the figures of all arms, as Markdown.
func tables(o *options, all []result) string {
	var b strings.Builder
	if slices.Contains(o.kinds, "ramp") {
		ramps(&b, o, all)
	}
	otherPrograms(&b, o, all)
	return b.String()
}

func ramps(b *strings.Builder, o *options, all []result) {
	fmt.Fprintf(b, "\n| arm | growth | ramps | survived | killed | alarm to effective p50 | p99 | GiB-minutes lent |\n")
	fmt.Fprintf(b, "|---|---|---|---|---|---|---|---|\n")
	for _, arm := range o.arms {
		for _, rate := range o.rates {
			var n, survived int
			var delays []time.Duration
			var lent float64
			for i := range all {
				r := &all[i]
				if r.arm != arm || r.rate != rate || !r.ramped() {
					continue
				}
				n++
				if !r.killed {
					survived++
				}
				delays, lent = append(delays, r.effectiveDelays()...), lent+r.lentGiBMinutes()
			}
			fmt.Fprintf(b, "| %s | %d MiB/s | %d | %d | %d | %s | %s | %.2f |\n", arm, rate, n, survived, n-survived,
				quantile(delays, .5), quantile(delays, .99), lent)
		}
	}
}

// ramped reports whether the program is a ramp that reached its limit. Other ramps do not count.
func (r *result) ramped() bool { return r.kind == "ramp" && (r.killed || r.peak >= int64(r.limit)<<20) }

// missedTargets returns the targets of issue 33 that the arm rescue measured and did not reach.
func missedTargets(all []result) (missed []string) {
	for _, target := range []struct {
		what  string
		share float64
		of    func(*result) bool
	}{
		{"ramps up to 100 MiB/s", .95, func(r *result) bool { return r.rate <= 100 }},
		{"ramps of 400 MiB/s from 512Mi", .5, func(r *result) bool { return r.rate == 400 && r.limit >= 512 }},
	} {
		var n, survived float64
		for i := range all {
			if r := &all[i]; r.arm == "rescue" && r.ramped() && target.of(r) {
				if n++; !r.killed {
					survived++
				}
			}
		}
		if survived < target.share*n {
			missed = append(missed, fmt.Sprintf("%.0f of %.0f %s survived, and %.0f %% are required", survived, n, target.what,
				100*target.share))
		}
	}
	return missed
}

func otherPrograms(b *strings.Builder, o *options, all []result) {
	fmt.Fprintf(b, "\n| arm | program | containers | killed | loans | container-minutes | loans per 100 hours |\n"+
		"|---|---|---|---|---|---|---|\n")
	for _, arm := range o.arms {
		for _, kind := range []string{"sawtooth", "heap", "leak"} {
			var n, killed, loans int
			var minutes float64
			for i := range all {
				r := &all[i]
				if r.arm != arm || r.kind != kind {
					continue
				}
				n++
				if r.killed {
					killed++
				}
				loans, minutes = loans+len(r.raises), minutes+r.lasts.Minutes()
			}
			if n > 0 {
				fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %.1f | %.0f |\n", arm, kind, n, killed, loans, minutes,
					float64(loans)*100*60/minutes)
			}
		}
	}
}

func quantile(all []time.Duration, q float64) string {
	if len(all) == 0 {
		return "-"
	}
	slices.Sort(all)
	return all[min(int(q*float64(len(all))), len(all)-1)].Round(time.Millisecond).String()
}
