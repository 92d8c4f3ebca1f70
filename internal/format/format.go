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

// Quantity returns an amount for a status: whole MiB from 1Mi up, rounded up, so that noise causes no write. nil for 0.
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

// About is [Count] for large numbers whose last digits do not matter: "412 samples", "41k samples", "3.2M samples".
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

// Silent lists nodes that do not report usage, three of them with error and time.
func Silent(nodes []memory.Silence) string {
	texts := make([]string, 0, len(nodes))
	for _, n := range nodes {
		texts = append(texts, fmt.Sprintf("node %s since %s: %s", n.Node, Time(n.Since), n.Error))
	}
	return Count(len(nodes), "node") + ": " + strings.Join(Few(texts, 3), "; ")
}

// Few returns the first texts of a list, and as another text how many follow: "and 4 more".
func Few(texts []string, most int) []string {
	if len(texts) <= most {
		return texts
	}
	return append(slices.Clone(texts[:most]), fmt.Sprintf("and %d more", len(texts)-most))
}
