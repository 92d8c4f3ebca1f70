// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

const mib = memory.MiB

// node answers as a kubelet: a container with 21Mi RSS and 73Mi in /dev/shm, beside 30Mi of page cache.
type node struct {
	at, started, measured time.Time
	rss, shm, cache       memory.Bytes
	noCounters            bool
	asked                 int
}

func (n *node) answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/stats/summary" {
		_, _ = fmt.Fprintf(w, `{"pods":[{"podRef":{"name":"web-0","namespace":"shop","uid":%q},"containers":[{"name":"app",
			"startTime":%q,"memory":{"time":%q,"rssBytes":%d,"workingSetBytes":%d,"usageBytes":%d}}]}]}`, uid,
			n.started.Format(time.RFC3339), n.at.Format(time.RFC3339), n.rss, n.rss+n.shm+n.cache, n.rss+n.shm+n.cache)
		return
	}
	n.asked++
	if n.noCounters {
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	ms := n.measured.UnixMilli()
	for series, v := range map[string]memory.Bytes{
		usageBytes: n.rss + n.shm + n.cache, activeFile: n.cache, inactive: 0, rssBytes: n.rss,
	} {
		_, _ = io.WriteString(w, fmt.Sprintf("%s{%s} %d %d\n", series, app, v, ms))
	}
}

// TestDemandHoldsSharedMemory: a PostgreSQL-like pod was sized by its RSS, a fifth of what it needs.
func TestDemandHoldsSharedMemory(t *testing.T) {
	now := time.Date(2026, 11, 26, 18, 0, 0, 0, time.UTC)
	like := func() *node {
		return &node{
			at: now, started: now.Add(-time.Hour), measured: now.Add(-5 * time.Second), rss: 21 * mib, shm: 73 * mib,
			cache: 30 * mib,
		}
	}
	for name, test := range map[string]struct {
		change func(*node)
		later  func(*node) // between the reading of counters and a second summary; nil: there is none
		demand memory.Bytes
		exact  bool
	}{
		"measured":             {demand: 94 * mib, exact: true},
		"counters are refused": {change: func(n *node) { n.noCounters = true }, demand: 21 * mib},
		"measured in the instance before this one": {change: func(n *node) { n.started = now }, demand: 21 * mib},
		"RSS moves on between two readings": {
			later: func(n *node) { n.at, n.rss = now.Add(time.Minute), 40*mib }, demand: 113 * mib, exact: true,
		},
		"no reading for an hour: an estimate": {
			later: func(n *node) { n.at = now.Add(time.Hour) }, demand: 94 * mib,
		},
		"shared memory and page cache were given back since": {
			later: func(n *node) { n.at, n.shm, n.cache = now.Add(time.Minute), 3*mib, 0 }, demand: 24 * mib, exact: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := like()
			if test.change != nil {
				test.change(n)
			}
			k := serving(t, n.answer)
			s := source(t, k.config(), Options{})
			got, err := s.Read(t.Context(), k.node)
			if test.later != nil {
				test.later(n)
				got, err = s.Read(t.Context(), k.node)
			}
			if err != nil || len(got.Samples) != 1 {
				t.Fatalf("%v, %v, want one sample", got, err)
			}
			if d := got.Samples[0]; d.Demand() != test.demand || d.Exact != test.exact {
				t.Errorf("demand %s, exact %t, want %s, %t", d.Demand(), d.Exact, test.demand, test.exact)
			}
			if n.asked != 1 {
				t.Errorf("Read asked for counters %d times, want once per node", n.asked)
			}
		})
	}
}

func TestWithoutCountersCadvisorIsNeverAsked(t *testing.T) {
	n := &node{at: time.Now(), rss: 21 * mib}
	k := serving(t, n.answer)
	if _, err := k.read(t, Options{NoCounters: true}); err != nil || n.asked != 0 {
		t.Errorf("asked %d times, %v, want 0", n.asked, err)
	}
}

func TestNodesThatAreGoneAreForgotten(t *testing.T) {
	now := time.Date(2026, 11, 26, 18, 0, 0, 0, time.UTC)
	b := newBeyondRSS(func() time.Time { return now })
	b.store("gone", Counters{web: {Measured: now}})
	for range 8 {
		now = now.Add(10 * time.Minute)
		b.store("here", Counters{web: {Measured: now}})
	}
	if b.requested("gone") || !b.requested("here") {
		t.Errorf("nodes kept: %v, want the one that is read", b.nodes)
	}
}
