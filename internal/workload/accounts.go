// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/signals"
)

// agentKills are the last kills that agents saw in the workload's pods, also in those that ended with it: a Job's. Only
// the agent of the pod's own node is heard.
func (s *Snapshot) agentKills() []signals.AgentKill {
	if len(s.Snapshots) == 0 {
		return nil
	}
	var all []signals.AgentKill
	for _, pod := range s.Pods {
		seen := s.Snapshots[pod.UID]
		if seen == nil || seen.Status.NodeName != pod.Spec.NodeName {
			continue
		}
		for i := range seen.Status.Containers {
			c := &seen.Status.Containers[i]
			if spec, _ := containerOf(pod, c.Container); spec != nil && c.LastKill != nil {
				all = append(all, agentKill(pod, c.Container, c.LastKill))
			}
		}
	}
	return all
}

// childProcess is the kind of a kill that a container survived, as agents write it.
const childProcess = "ChildProcess"

func agentKill(pod *corev1.Pod, container string, k *v1alpha1.KillSnapshot) signals.AgentKill {
	out := signals.AgentKill{
		Container: memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: container},
		Time:      k.Time.Time, Child: k.Kind == childProcess, Account: account(k),
	}
	if !k.LimitsChanged {
		out.Limit = signals.LimitInForce(
			pod, container, limitOrNone(k.ContainerLimit), limitOrNone(k.PodLimit),
		)
	}
	return out
}

const (
	// accountMost bounds an account, in bytes: the ledger keeps it with the kill, in a checkpoint that holds many.
	accountMost = 320
	// durationMost is the bound of a duration in the API.
	durationMost = 32
)

// account is what an agent saw of a kill: `"node" (157Mi resident) died; 250ms before, 126Mi were in use, after growth
// by 19Mi/s for 6.5s; filled by V8 heap 96Mi, glibc arenas 20Mi, of which 4Mi is free`.
func account(k *v1alpha1.KillSnapshot) string {
	var parts []string
	if len(k.Processes) > 0 {
		p := &k.Processes[0]
		died := quote.Name(p.Name)
		if p.Resident != nil {
			died += " (" + amount(*p.Resident).String() + " resident)"
		}
		parts = append(parts, died+" died")
	}
	if k.Usage == nil {
		parts = append(parts, "nothing is known of the time before")
	} else {
		text := fmt.Sprintf("%s before, %s were in use", short(k.LastReadBefore), amount(*k.Usage))
		if k.GrowthPerSecond != nil && k.GrewFor != "" {
			text += fmt.Sprintf(", after growth by %s/s for %s", amount(*k.GrowthPerSecond), short(k.GrewFor))
		}
		parts = append(parts, text)
	}
	if k.LimitsChanged {
		parts = append(parts, "its limits changed meanwhile")
	}
	if k.Memory != nil && len(k.Memory.Parts) > 0 {
		var filled []string
		for _, p := range head(k.Memory.Parts, partsTold) { // the largest first
			filled = append(filled, partLine(p))
		}
		parts = append(parts, "filled by "+join(filled))
	}
	return quote.Cut(strings.Join(parts, "; "), accountMost)
}

func short(duration string) string { return quote.Cut(quote.Line(duration), durationMost) }

func limitOrNone(q *resource.Quantity) memory.Bytes {
	if q == nil {
		return 0
	}
	return amount(*q)
}
