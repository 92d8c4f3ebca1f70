// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/recommend"
)

// half requests half of its limit.
type half struct{ scripted }

func (*half) Request(limit int64) int64 { return limit / 2 }

// TestPublishedMetrics: two days of 100 MiB under 200, of which the second has a kill; the request is half the limit.
func TestPublishedMetrics(t *testing.T) {
	var values []int64
	for i := range 2 * 144 {
		if i == 200 {
			values = append(values, 900)
		} else {
			values = append(values, 100)
		}
	}
	values[3] = 160 // the first limit is 1.2 times as much: 192 MiB
	idle := Series{Name: "never ran", Points: []Point{{0, 0}, {600, 0}}}
	set := Set{Name: "s", Series: []Series{everyTenMinutes(values...), idle}}
	o := Outcome{Set: "s", Policy: "p"}
	for _, s := range set.Series {
		o.Results = append(o.Results, Simulate(s, &half{}, false))
	}
	w := o.Metrics(UseP95(set))
	first, second := 1-(143*100+160)/(144*192.), 1-100/192.
	if want := (first + second) / 2; math.Abs(w.RelativeSlack-want) > 1e-9 {
		t.Errorf("relative slack %v, want the mean of two days, %v", w.RelativeSlack, want)
	}
	if w.Quiet != 0.5 || w.ChangesPerDay != 0 || math.Abs(w.RequestOverP95-0.96) > 1e-9 {
		t.Errorf("%+v: want one of two days without a kill, no change, and 96 MiB requested per 100", w)
	}
	var out bytes.Buffer
	w.Print(&out, o)
	want := "set=s policy=p relative_slack=0.478 days_without_kill=0.5000 request_over_p95=0.96 changes_per_day=0.000\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if w := (Outcome{}).Metrics(nil); w != (Metrics{}) {
		t.Errorf("%+v without results", w)
	}
}

// TestMemfitRequestsWhatItRecommends: less than the limit after a day, and never below what was in use.
func TestMemfitRequestsWhatItRecommends(t *testing.T) {
	var s Series
	for i := range int64(3 * 144) {
		use := 100 * mib
		if i%144 == 50 {
			use = 300 * mib
		}
		s.Points = append(s.Points, Point{someDay.Unix() + i*600, use})
	}
	m := newMemfit(recommend.Balanced)
	Simulate(s, m, false)
	limit := int64(m.last.Size.Limit)
	if got := m.Request(limit); got >= limit || got < 100*mib {
		t.Errorf("request %d MiB under a limit of %d: want between use and limit", got>>20, limit>>20)
	}
	if got := m.Request(50 * mib); got != 50*mib {
		t.Errorf("request %d MiB above the limit", got>>20)
	}
	at := someDay.Add(4 * 24 * time.Hour)
	for range 4 {
		at = at.Add(time.Minute)
		m.Observe(at, 250*mib, limit)
	}
	m.Limit(at, limit)
	if got := m.Request(limit); got < 250*mib {
		t.Errorf("request %d MiB while 250 are in use", got>>20)
	}
}
