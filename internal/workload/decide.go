// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/apply"
	"github.com/memfit/memfit/internal/drift"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/signals"
)

// summaries are what is made of each container, by name.
func (v *result) summaries() map[string]string {
	all := maps.Clone(v.unnamed)
	if all == nil {
		all = map[string]string{}
	}
	for i := range v.status.Containers {
		all[v.status.Containers[i].Container] = v.status.Containers[i].Summary
	}
	return all
}

// aboveReplicas says how far a pod's container is above the others: "Pod web-x uses 640Mi, its replicas 330Mi (median of 60)".
func (v *result) aboveReplicas(container, pod string) string {
	var use memory.Bytes
	var all []memory.Bytes
	for _, r := range v.replicas[container] {
		all = append(all, r.RSS)
		if r.Pod == pod {
			use = r.RSS
		}
	}
	if use == 0 {
		return "Pod " + pod + " uses far more than its replicas"
	}
	slices.Sort(all)
	return fmt.Sprintf("Pod %s uses %s, its replicas %s (median of %d)", pod, use, all[len(all)/2], len(all))
}

// sickSentence is the same on the pod itself, with what it means.
func (v *result) sickSentence(pod string) string {
	for i := range v.status.Containers {
		if c := &v.status.Containers[i]; c.Shape != nil && slices.Contains(c.Shape.SickPods, pod) {
			return "Container " + c.Container + ": " + v.aboveReplicas(c.Container, pod) + ". It is this pod, not the size: look at what it does before you raise the limit"
		}
	}
	return "Its memory is far above that of its replicas"
}

// compared: the pod was measured long enough to be compared with its replicas.
func (v *result) compared(pod string) bool {
	for _, replicas := range v.replicas {
		if slices.ContainsFunc(replicas, func(r signals.Replica) bool { return r.Pod == pod }) {
			return true
		}
	}
	return false
}

// result is what was found out about a workload.
type result struct {
	status   v1alpha1.MemoryRecommendationStatus
	coverage coverage
	// shapes are what memory does, by container.
	shapes map[string]signals.Shape
	// judged are the same with what they rest on.
	shapeCaches map[string]shapeCache
	// leaks are containers that climb from every start until they are killed.
	leaks map[string]signals.Ramps
	// alive is what replicas show of their heaps, by container.
	alive map[string]alive
	// recommended are the sizes that stand, by container.
	recommended map[string]v1alpha1.Size
	// changed are the containers whose recommendation is new.
	changed []string
	// restart is the pod to evict for its memory, if the profile says so.
	restart drift.Decision
	// findings are what became of changes begun earlier, apply what is to be done to running pods now.
	findings []apply.Finding
	apply    apply.Decision
	// replicas are what running pods use, by container.
	replicas     map[string][]signals.Replica
	requeueAfter time.Duration
	// unnamed is the advice about init containers that are killed and that nobody named, by container.
	unnamed map[string]string
}

const (
	// maxLook and minLook bound the time to the next look without news. Samples queue a workload anyway.
	maxRequeue = 10 * time.Minute
	minRequeue = 10 * time.Second
	// restPart: samples alone rest a workload for no more than a quarter of what is known of it: what is hardly known
	// changes with every sample.
	restPart = 4
)

// decide looks at a snapshot and at what is remembered, and says what to tell. It writes nothing and changes nothing.
func decide(s *Snapshot, m *State, now time.Time) result {
	v := result{alive: m.alive(now), recommended: map[string]v1alpha1.Size{}, shapes: map[string]signals.Shape{}, shapeCaches: map[string]shapeCache{}, replicas: map[string][]signals.Replica{}, leaks: map[string]signals.Ramps{}, requeueAfter: maxRequeue}
	running := applyInput(s, m, liveOf(v.alive, m.Standing), now)
	running.State, v.findings = apply.Observe(running, m.ledger.AllKillsAndStalls(now))
	if s.Template != nil {
		v.unnamed = unnamed(s.Profile, s.Template, m.ledger.Kills, m.ledger.Total)
		for _, container := range slices.Sorted(maps.Keys(v.unnamed)) {
			v.status.Advisories = append(v.status.Advisories, v.unnamed[container])
		}
		plan := inject.MakePlan(inject.Input{Pod: s.Template, Profile: s.Profile, Live: liveOf(v.alive, m.Standing), Created: true})
		for _, c := range Managed(s.Profile, s.Template) {
			q := containerInput{
				container: c, plan: plan, history: m.Containers[c.Name], kills: m.ledger.KillsAndStalls(c.Name, now), replicas: m.replicas(c.Name, s.Governed),
				urgent:   m.urgent(c.Name, s.Governed, c.current.Limit),
				standing: m.Standing[c.Name], before: m.shapes[c.Name], now: now,
				inUse: m.inUse(c.Name, s.Governed), largestNode: s.Facts.LargestNode,
			}
			q.unrelieved, _ = m.ledger.RaisedInVain(c.Name, now)
			if taken, stands := running.State.Standing(c.Name, now); stands {
				q.reverted = &taken
			}
			q.leak = signals.FindRamps(q.kills, now)
			v.leaks[c.Name] = q.leak
			a := q.result()
			a.status.Use, a.status.UseSeen = m.used[c.Name].Use, m.used[c.Name].UseSeen
			if most, seen := m.use(c.Name, s.Governed); most > 0 {
				a.status.Use, a.status.UseSeen = format.Quantity(most), &metav1.Time{Time: seen.UTC().Truncate(time.Second)}
			}
			a.status.OOMKills, a.status.Stalls = m.ledger.Total(c.Name), m.ledger.StallTotal(c.Name)
			m.sayInVain(&a.status, now)
			if a.status.Recommended != nil {
				v.recommended[c.Name] = *a.status.Recommended
				if resizes(s.Profile.Spec.Sizing.Mode) {
					running.Desired[c.Name] = q.wish(s, a.recommendation)
				}
				if !Near(*a.status.Recommended, m.Standing[c.Name]) {
					v.changed = append(v.changed, c.Name)
				}
			}
			if plan.CapsHeap(c.Name) {
				v.alive[c.Name].publish(&a.status.Evidence)
			}
			a.status.Evidence.Source = evidenceSource(m.source, m.past, m.Containers[c.Name])
			v.shapes[c.Name], v.shapeCaches[c.Name], v.replicas[c.Name] = a.shape, a.shapeCache, q.replicas
			for _, text := range plan.Advisories(c.Name) {
				v.status.Advisories = append(v.status.Advisories, "Container "+c.Name+": "+text)
			}
			v.status.Containers = append(v.status.Containers, a.status)
			v.requeueAfter = min(v.requeueAfter, a.requeueAfter)
			if len(v.status.Containers) == MaxContainers {
				break
			}
		}
	}
	v.restart = restartOf(s, m, v.shapes, now)
	if v.restart.Pod != "" {
		running.Restart = &apply.Candidate{Pod: v.restart.Pod, UID: v.restart.UID, Why: v.restart.Why}
	}
	v.apply = apply.Decide(running)
	if v.restart.Pod != "" && v.apply.RestartHeld != "" {
		v.restart = drift.Decision{Why: v.restart.Why, Held: v.apply.RestartHeld}
	}
	if v.apply.NextLook > 0 {
		v.requeueAfter = min(v.requeueAfter, v.apply.NextLook)
	}
	v.requeueAfter = max(v.requeueAfter, minRequeue)
	v.coverage = cover(s, liveOf(v.alive, v.recommended))
	v.status.ProfileGeneration = s.Profile.Generation
	v.status.Coverage = &v.coverage.Coverage
	v.status.OOMKills, v.status.RecentOOMKills = killRecords(&m.ledger)
	v.status.Stalls, v.status.RecentStalls = stallRecords(&m.ledger)
	v.status.Limit = limitColumn(v.status.Containers)
	v.status.Summary = workloadSummary(s, v.status.Containers)
	v.status.Advisories = head(v.status.Advisories, 8)
	if v.restart.NextLook > 0 {
		v.requeueAfter = min(v.requeueAfter, v.restart.NextLook)
	}
	v.status.Conditions = workloadConditions(s, m, &v, v.coverage, now)
	return v
}
