// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/quote"
)

// seenByAgents returns the last kills and stalls that the agents recorded, including those of ended pods.
func (s *Snapshot) seenByAgents() (kills []oom.AgentKill, stalls []oom.AgentStall) {
	for _, pod := range s.Pods {
		for _, name := range ContainersOf(&pod.Spec) {
			c := s.seenByAgent(pod, name)
			if c != nil && c.LastKill != nil {
				short := oom.UnderPressureAt(s.Facts.NodePressureSince[pod.Spec.NodeName], c.LastKill.Time.Time)
				kills = append(kills, agentKill(pod, name, c.LastKill, short))
			}
			if c != nil && c.LastStall != nil {
				stalls = append(stalls, agentStall(pod, name, c.LastStall))
			}
		}
	}
	return kills, stalls
}

// seenByAgent returns the snapshot of a pod's container by the agent of the pod's node; nil: none.
func (s *Snapshot) seenByAgent(pod *corev1.Pod, container string) *v1alpha1.ContainerSnapshot {
	seen := s.Snapshots[pod.UID]
	if seen == nil || seen.Status.NodeName != pod.Spec.NodeName {
		return nil
	}
	for i := range seen.Status.Containers {
		if c := &seen.Status.Containers[i]; c.Container == container {
			return c
		}
	}
	return nil
}

// childProcess is [v1alpha1.KillSnapshot.Kind] of a kill that the container survived.
const childProcess = "ChildProcess"

// agentKill converts an agent's record of a kill. ByNode requires that the node was short of memory, because an agent
// alone must not be able to make a kill count less.
func agentKill(pod *corev1.Pod, container string, k *v1alpha1.KillSnapshot, nodeShort bool) oom.AgentKill {
	out := oom.AgentKill{
		Container: refOf(pod, container), Time: k.Time.Time, Child: k.Kind == childProcess, Account: killAccount(k),
		AtLimit: k.LimitReached == "Yes", ByNode: k.LimitReached == "No" && nodeShort,
	}
	if !k.LimitsChanged {
		out.Limit = oom.EffectiveLimit(pod, container, limitOrNone(k.ContainerLimit), limitOrNone(k.PodLimit))
	}
	return out
}

func refOf(pod *corev1.Pod, container string) memory.ContainerRef {
	return memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: container}
}

func agentStall(pod *corev1.Pod, container string, s *v1alpha1.StallSnapshot) oom.AgentStall {
	out := oom.AgentStall{
		Container: refOf(pod, container), Started: s.Started.Time, Account: stallAccount(s), High: limitOrNone(s.High),
		Anon: limitOrNone(s.Anonymous), Faults: s.MajorFaultsPerSecond, PressurePercent: s.StalledPercent,
		Limit: oom.EffectiveLimit(pod, container, limitOrNone(s.ContainerLimit), limitOrNone(s.PodLimit)),
	}
	if s.Ended != nil {
		out.Ended = s.Ended.Time
	}
	return out
}

// maxAccount bounds an account of a kill or stall, in bytes, because the checkpoint stores many.
const maxAccount = 320

// killAccount returns `"node" (157Mi resident) died; 250ms before, 126Mi were in use, after growth by 19Mi/s for 6.5s;
// filled by V8 heap 96Mi, glibc arenas 20Mi, of which 4Mi is free`.
func killAccount(k *v1alpha1.KillSnapshot) string {
	var parts []string
	if len(k.Processes) > 0 {
		p := &k.Processes[0]
		died := quote.Name(p.Name)
		if p.Resident != nil {
			died += " (" + amount(*p.Resident).String() + " resident)"
		}
		parts = append(parts, died+" died")
	}
	before := formatMilliseconds(k.LastReadMillisecondsBefore) + " before, "
	parts = append(parts, inUse(before, k.Usage, k.GrowthPerSecond, k.GrowthMilliseconds))
	if k.LimitsChanged {
		parts = append(parts, "its limits changed meanwhile")
	}
	if k.LimitReached == "No" {
		parts = append(parts, "no limit was reached")
	}
	parts = append(parts, largestParts(k.Memory)...)
	return quote.Cut(strings.Join(parts, "; "), maxAccount)
}

// stallAccount returns `the kernel capped usage at 512Mi, the limit of its container; 488Mi were in use, after growth
// by 9Mi/s for 12s; filled by V8 heap 96Mi, glibc arenas 20Mi, of which 4Mi is free`.
func stallAccount(s *v1alpha1.StallSnapshot) string {
	limit, which := limitOrNone(s.ContainerLimit), "the limit of its container"
	if pods := limitOrNone(s.PodLimit); pods > 0 && (limit == 0 || pods < limit) {
		limit, which = pods, "the limit of its pod"
	}
	if high := limitOrNone(s.High); high > 0 && (limit == 0 || high < limit) {
		limit, which = high, "its memory.high"
	}
	var parts []string
	if limit > 0 {
		parts = append(parts, fmt.Sprintf("the kernel capped usage at %s, %s", limit, which))
	}
	parts = append(parts, inUse("", s.Usage, s.GrowthPerSecond, s.GrowthMilliseconds))
	parts = append(parts, largestParts(s.Memory)...)
	return quote.Cut(strings.Join(parts, "; "), maxAccount)
}

// inUse describes the last usage before a kill or stall, and its growth if known.
func inUse(before string, usage, perSecond *resource.Quantity, milliseconds int32) string {
	if usage == nil {
		return "no earlier data"
	}
	text := before + amount(*usage).String() + " were in use"
	if perSecond != nil && milliseconds > 0 {
		text += fmt.Sprintf(", after growth by %s/s for %s", amount(*perSecond), formatMilliseconds(milliseconds))
	}
	return text
}

func largestParts(m *v1alpha1.MemoryParts) []string {
	if m == nil || len(m.Parts) == 0 {
		return nil
	}
	var filled []string
	for _, p := range head(m.Parts, partsListed) { // the largest first
		filled = append(filled, partLine(p))
	}
	return []string{"filled by " + strings.Join(filled, ", ")}
}

func formatMilliseconds(milliseconds int32) string {
	return format.Short(time.Duration(milliseconds) * time.Millisecond)
}

func limitOrNone(q *resource.Quantity) memory.Bytes {
	if q == nil {
		return 0
	}
	return amount(*q)
}
