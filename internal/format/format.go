// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package format formats amounts, durations and counts for messages.
package format

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/internal/memory"
)

// Quantity returns an amount for a status; nil for 0. From 1Mi on, it rounds up to whole MiB, so that noise causes no
// write.
func Quantity(b memory.Bytes) *resource.Quantity {
	if b >= memory.MiB {
		b = b.CeilTo(memory.MiB)
	}
	return Exact(b)
}

// Exact returns an exact amount, for sizes that users set; nil for 0.
func Exact(b memory.Bytes) *resource.Quantity {
	if b <= 0 {
		return nil
	}
	return new(b.Quantity())
}

// Duration formats a duration like kubectl, for fields, columns and exact values: "45s", "12m5s", "3h20m", "24h",
// "9d4h".
func Duration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%s", int(d.Minutes()), remainder(int(d.Seconds())%60, "s"))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%s", int(d.Hours()), remainder(int(d.Minutes())%60, "m"))
	default:
		return fmt.Sprintf("%dd%s", int(d.Hours())/24, remainder(int(d.Hours())%24, "h"))
	}
}

func remainder(n int, unit string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d%s", n, unit)
}

// Count returns "1 pod", "3 pods".
func Count[N int | int32 | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// About returns a rounded [Count], for large numbers: "412 samples", "41k samples", "3.2M samples".
func About(n int64, noun string) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%dM %ss", n/1_000_000, noun)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM %ss", float64(n)/1e6, noun)
	case n >= 1000:
		return fmt.Sprintf("%dk %ss", (n+500)/1000, noun)
	}
	return Count(n, noun)
}

// OfPods returns "1 of 3 pods".
func OfPods(n, all int32) string { return fmt.Sprintf("%d of %d pods", n, all) }

// SilentNodes returns the number of nodes that do not report usage, and for three of them the time and the error.
func SilentNodes(nodes []memory.Silence) string {
	texts := make([]string, 0, len(nodes))
	for _, n := range nodes {
		texts = append(texts, fmt.Sprintf("%s (since %s): %s", n.Node, Time(n.Since), n.Error))
	}
	return Count(len(nodes), "node") + ": " + strings.Join(Few(texts, 3), "; ")
}

// Few returns the first n texts of a list, followed by the number of the others: "and 4 more".
func Few(texts []string, n int) []string {
	if len(texts) <= n {
		return texts
	}
	return append(slices.Clone(texts[:n]), fmt.Sprintf("and %d more", len(texts)-n))
}

// Time formats a time for messages, in UTC. Messages contain no relative times, because they are stored and read later.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// TimeOfDay returns Time, without the date if t is within a day of now: "14:03:12Z".
func TimeOfDay(t, now time.Time) string {
	if now.Sub(t).Abs() >= 24*time.Hour {
		return Time(t)
	}
	return t.UTC().Format("15:04:05Z")
}

// Day formats the day of a time, for the axis of a chart: "2 Jan".
func Day(t time.Time) string { return t.UTC().Format("2 Jan") }

// Hour formats the weekday and hour of a time, for the axis of a chart: "Mon 15:00".
func Hour(t time.Time) string { return t.UTC().Format("Mon 15:00") }

// InWords formats a duration for sentences, rounded to at most two units: "9 days", "1 day 4 h", "35 min". It is for
// periods and estimates; [Duration] is for exact values, such as settings and uptimes.
func InWords(d time.Duration) string {
	d = max(d, 0)
	day := 24 * time.Hour
	switch {
	case d >= 3*day:
		return fmt.Sprintf("%d days", (d+day/2)/day)
	case d >= 2*day:
		return "2 days" + hoursMore(d-2*day)
	case d >= day:
		return "1 day" + hoursMore(d-day)
	case d >= 10*time.Hour:
		return fmt.Sprintf("%d h", (d+time.Hour/2)/time.Hour)
	case d >= time.Hour:
		if m := d % time.Hour / time.Minute; m > 0 {
			return fmt.Sprintf("%d h %d min", d/time.Hour, m)
		}
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

func hoursMore(rest time.Duration) string {
	if h := rest / time.Hour; h > 0 {
		return fmt.Sprintf(" %d h", h)
	}
	return ""
}

// Short formats a duration of milliseconds or seconds: "250ms", "12s".
func Short(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return Duration(d.Round(time.Second))
}
