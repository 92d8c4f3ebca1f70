// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package htmlreport

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/memory"
)

// steps are a request or limit over time, oldest first. An amount is valid until the next step; 0: not set.
type steps []step

type step struct {
	from   time.Time
	amount memory.Bytes
}

// linesOf returns the lines of a chart: past limits and requests, and at the right the recommended ones if they differ.
func linesOf(c *v1alpha1.ContainerRecommendation, s *v1alpha1.MemoryRecommendationStatus, sc *scale) (lines []line) {
	add := func(class, name string, steps steps) {
		if slices.ContainsFunc(steps, func(s step) bool { return s.amount > 0 }) {
			lines = append(lines, line{Class: class, Title: name, steps: steps})
		}
	}
	limit, request := report.Bytes(c.Current.Limit), report.Bytes(c.Current.Request)
	add("limit", "limit", limitsOf(c.Container, s, limit).within(sc))
	add("request", "request", requestsOf(c.Container, s, request).within(sc))
	if r := c.Recommended; r != nil {
		start := sc.to.Add(-sc.to.Sub(sc.from) / recommendedPart)
		if to := report.Bytes(r.Limit); to != limit {
			add("limit proposed", "recommended limit", steps{{start, to}})
		}
		if to := report.Bytes(r.Request); to != request {
			add("request proposed", "recommended request", steps{{start, to}})
		}
	}
	return lines
}

// recommendedPart is the number of parts of the width. The last part is for the recommendation.
const recommendedPart = 6

// known is a known limit or request: its amounts before and after a time.
type known struct {
	at            time.Time
	before, after memory.Bytes
}

// limitsOf returns the limits of a container: from kills and stalls until memfit's first change, then from the changes.
func limitsOf(container string, s *v1alpha1.MemoryRecommendationStatus, now memory.Bytes) steps {
	all := changed(container, s, func(size *v1alpha1.Size) memory.Bytes { return report.Bytes(size.Limit) })
	changes := len(all)
	observed := func(name string, at time.Time, limit memory.Bytes) {
		if name == container && limit > 0 && (changes == 0 || at.Before(all[0].at)) {
			all = append(all, known{at, limit, limit})
		}
	}
	for i := range s.RecentOOMKills {
		k := &s.RecentOOMKills[i]
		observed(k.Container, k.Time.Time, report.Bytes(k.Limit))
	}
	for i := range s.RecentStalls {
		st := &s.RecentStalls[i]
		observed(st.Container, st.Time.Time, memory.FromQuantity(st.Limit))
	}
	return joined(all, now)
}

func requestsOf(container string, s *v1alpha1.MemoryRecommendationStatus, now memory.Bytes) steps {
	return joined(changed(container, s, func(size *v1alpha1.Size) memory.Bytes { return report.Bytes(size.Request) }), now)
}

// changed returns the changes that took effect, oldest first, each at the time of its first pod.
func changed(
	container string, s *v1alpha1.MemoryRecommendationStatus, of func(*v1alpha1.Size) memory.Bytes,
) (all []known) {
	for i := range s.RecentChanges {
		c := &s.RecentChanges[i]
		if c.Kind != v1alpha1.EventResized && c.Kind != v1alpha1.EventReplaced && c.Kind != v1alpha1.EventReverted {
			continue
		}
		at := c.Time.Time
		if c.Since != nil {
			at = c.Since.Time
		}
		for j := range c.Sizes {
			if size := &c.Sizes[j]; size.Container == container {
				all = append(all, known{at, of(&size.From), of(&size.To)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b known) int { return a.at.Compare(b.at) })
	return all
}

// joined returns steps through all known sizes. An unknown change between two of them is drawn right after the first.
func joined(all []known, now memory.Bytes) (out steps) {
	slices.SortStableFunc(all, func(a, b known) int { return a.at.Compare(b.at) })
	add := func(at time.Time, amount memory.Bytes) {
		if len(out) == 0 || out[len(out)-1].amount != amount {
			out = append(out, step{at, amount})
		}
	}
	last := time.Time{} // the oldest amount is drawn from the start
	for _, k := range all {
		add(last, k.before)
		add(k.at, k.after)
		last = k.at
	}
	if len(out) == 0 {
		return steps{{amount: now}}
	}
	add(last, now)
	return out
}

// within returns the steps in the period of a chart. The first step begins with the period.
func (s steps) within(sc *scale) (out steps) {
	for _, st := range s {
		switch {
		case st.from.After(sc.to):
		case !st.from.After(sc.from):
			out = steps{{sc.from, st.amount}}
		default:
			out = append(out, st)
		}
	}
	return out
}

// path returns the SVG path of the line, with gaps where the limit or request was not set.
func (s steps) path(sc *scale) string {
	var b strings.Builder
	drawn := false
	for i, st := range s {
		end := sc.to
		if i+1 < len(s) {
			end = s[i+1].from
		}
		switch {
		case st.amount == 0:
		case drawn:
			fmt.Fprintf(&b, "V%.1fH%.1f", sc.y(st.amount), sc.x(end))
		default:
			fmt.Fprintf(&b, "M%.1f %.1fH%.1f", sc.x(st.from), sc.y(st.amount), sc.x(end))
		}
		drawn = st.amount != 0
	}
	return b.String()
}

// lastAmounts returns the last amounts with their times: "256Mi, before 21 Nov 192Mi".
func (s steps) lastAmounts(text func(time.Time) string) string {
	var parts []string
	for i := len(s) - 1; i >= 0 && len(parts) < maxAmounts; i-- {
		amount := "none"
		if s[i].amount > 0 {
			amount = s[i].amount.String()
		}
		if i+1 < len(s) {
			amount = "before " + text(s[i+1].from) + " " + amount
		}
		parts = append(parts, amount)
	}
	return strings.Join(parts, ", ")
}

// maxAmounts is the maximum number of amounts that lastAmounts returns.
const maxAmounts = 4
