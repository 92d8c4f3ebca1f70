// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/recommend"
)

// ledgerDetail is the number of kills that the OOM ledger keeps in detail; Evaluate gets at most that many, as in a
// cluster.
const ledgerDetail = 20

// traceNode is larger than any demand in the traces, whose nodes are unknown.
const traceNode = 4096 * memory.GiB

// memfit runs the operator's own sizing code as the controllers do: it adds samples to a history and kills to a ledger,
// and evaluates both.
type memfit struct {
	policy  recommend.Policy
	model   recommend.Model
	traits  recommend.Traits // of the runtime, which traces do not have: set in tests only
	history history.Container
	kills   []memory.OOMKill
	peak    memory.Bytes // of this process
	started time.Time
	request memory.Bytes    // the current request; 0 before the first recommendation
	inUse   [4]memory.Bytes // the last four readings
	prior   recommend.Prior // from other workloads of the image
	teaches period.Evidence // for the prior of other workloads of the image
	// last is the newest recommendation, for reports.
	last recommend.Recommendation
}

var theContainer = memory.ContainerRef{Namespace: "trace", Pod: "pod", UID: "1", Container: "c"}

// newMemfit returns a policy with the defaults of an empty profile and a price of a kill.
func newMemfit(price memory.Bytes) *memfit {
	p := defaultPolicy()
	p.KillPrice = price
	return &memfit{policy: p, model: recommend.DefaultModel()}
}

// defaultPolicy returns the policy of an empty profile.
func defaultPolicy() recommend.Policy {
	container := (&profile.Profile{Spec: &v1alpha1.MemoryProfileSpec{}}).Container(theContainer.Container, nil)
	return container.SizePolicy()
}

func (m *memfit) Observe(at time.Time, use, limit int64) {
	if m.started.IsZero() {
		m.started = at
	}
	m.peak = max(m.peak, memory.Bytes(use))
	copy(m.inUse[1:], m.inUse[:])
	m.inUse[0] = memory.Bytes(use)
	m.history.Add(memory.Sample{
		Container: theContainer, Time: at, Started: m.started,
		RSS: memory.Bytes(use), HasRSS: true, Exact: true, WorkingSet: memory.Bytes(use),
	}, memory.Bytes(limit))
}

func (m *memfit) Killed(at time.Time, limit int64) {
	kill := memory.OOMKill{
		// in the simulator every limit is effective
		Container: theContainer, Kind: memory.OOMMainProcess, Time: at, Limit: memory.Bytes(limit), Proven: true,
		Peak:       m.peak,
		Confidence: memory.High, Why: "simulated",
	}
	if !m.started.IsZero() {
		kill.Uptime = at.Sub(m.started)
	}
	m.kills = append(m.kills, kill)
	if len(m.kills) > ledgerDetail {
		m.kills = m.kills[1:]
	}
	m.history.Restarted(theContainer, at)
	m.started, m.peak, m.inUse = at, 0, [4]memory.Bytes{}
}

func (m *memfit) Limit(at time.Time, limit int64) int64 {
	now := memory.Bytes(limit)
	m.last = recommend.Evaluate(recommend.Input{
		History: &m.history, Kills: m.kills, Policy: m.policy, Model: &m.model, Traits: m.traits,
		Prior:   m.prior,
		Current: memory.Size{Request: memory.Bytes(m.Request(limit)), Limit: now}, InUse: slices.Min(m.inUse[:]),
		InUseSeen: at, LargestNode: traceNode, Now: at,
	})
	m.teaches = max(m.teaches, m.last.BurstEvidence)
	if m.last.Decision != recommend.Increase && m.last.Decision != recommend.Decrease {
		return 0
	}
	m.request = m.last.Size.Request
	return int64(m.last.Size.Limit)
}

// Request returns the last recommended request, at most the limit.
func (m *memfit) Request(limit int64) int64 {
	if m.request == 0 {
		return limit
	}
	return min(int64(m.request), limit)
}
