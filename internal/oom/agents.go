// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
)

// AgentKill is the agent's record of the last OOM kill in a container.
type AgentKill struct {
	Container memory.ContainerRef
	// Time is when the agent detected it, in whole seconds, on the clock of the node and its kubelet.
	Time time.Time
	// Child is true if the container continued.
	Child bool
	// Limit is the effective limit ([EffectiveLimit]). 0: unknown, or none.
	Limit memory.Bytes
	// AtLimit is true if the kernel counted that a limit was reached. ByNode is true if it counted that none was, and the
	// node reports MemoryPressure ([ShortAt]). Neither: unknown.
	AtLimit, ByNode bool
	// Account is the minute before it in a sentence.
	Account string
}

// AgentStall is the agent's record of the last stall of a container.
type AgentStall struct {
	Container memory.ContainerRef
	// Started and Ended are on the node's clock, in whole seconds; Ended is zero while it continues.
	Started, Ended time.Time
	// Limit is the effective limit ([EffectiveLimit]); 0: unknown, or none. High is memory.high if it stalled there,
	// below Limit; 0: at Limit.
	Limit, High memory.Bytes
	// Anon is the anonymous memory when it was confirmed.
	Anon memory.Bytes
	// Faults are the major page faults a second, PressurePercent the share of time in which all tasks waited for memory.
	Faults, PressurePercent int32
	// Account is the minute before it in a sentence.
	Account string
}

const (
	// stallApart is the maximum time between the agent's stall and the one in the kubelet's numbers: both need a minute
	// of readings up to 15 s apart to start and to end.
	stallApart = 2 * time.Minute
	// stallAccountBytes bounds the accounts of agents about all stalls of a workload.
	stallAccountBytes = 8 << 10
	// statusLead and statusLag are how long before and after the kubelet's time of an end the agent may detect the kill:
	// the kubelet's time comes from the container runtime, and a container far below its limit is read every 10 s, or
	// every 16 s on a busy node.
	statusLead = 5 * time.Second
	statusLag  = 20 * time.Second
	// counterLead is how long before the reading of the kernel's counter the agent may detect a kill: the kubelet's
	// metrics are read every 15 s, and are up to a minute old while an API server or a kubelet is busy.
	counterLead = 2 * time.Minute
	// ahead is how far a node's clock may be ahead of memfit's before its agent's reports are ignored.
	ahead = 5 * time.Minute
)

// UpdateAgents adds the reports of agents: to recorded kills the minute before and the effective limit, which replaces
// the assumption of [Ledger.proven], and new kills of child processes. It returns new kills, oldest first, and recorded
// ones that got their first account. Reports may repeat with every step. For peak and shown see
// [Ledger.UpdateCounters].
func (l *Ledger) UpdateAgents(
	seen []AgentKill, peak, shown func(memory.ContainerRef) memory.Bytes, now time.Time,
) (found, explained []memory.OOMKill) {
	l.begin(now)
	for _, a := range seen {
		a.Time = plausible(a.Time).Truncate(time.Second)
		if k := l.recordedKill(a); k != nil {
			first := k.Account == ""
			explain(k, a)
			l.inferred(k, a)
			if first {
				explained = append(explained, *k)
			}
			continue
		}
		if k, ok := l.ofChild(a, shown, now); ok {
			if peak != nil {
				k.Peak = peak(a.Container)
			}
			found = append(found, k)
		}
	}
	l.trimDetails()
	return l.record(found, now), explained
}

// ExplainStalls adds the reports of agents to recorded stalls, and returns those that got their first account. It
// counts no stalls; [StallWatch.Report] does. Reports may repeat with every step.
func (l *Ledger) ExplainStalls(seen []AgentStall, now time.Time) (explained []memory.Stall) {
	for _, a := range seen {
		a.Started = plausible(a.Started).Truncate(time.Second)
		if s := l.stallOnFile(a, now); s != nil {
			s.Account, s.AccountAt = a.Account, a.Started
			explained = append(explained, *s)
		}
	}
	l.trimAccounts()
	return explained
}

// stallOnFile returns the newest recorded stall of an agent's report that has no account yet; nil: none.
func (l *Ledger) stallOnFile(a AgentStall, now time.Time) *memory.Stall {
	until := func(ended time.Time) time.Time {
		if ended.IsZero() {
			ended = now
		}
		return ended.Add(stallApart)
	}
	kept := l.of(a.Container.Container).Stalls
	explained := func(s memory.Stall) bool {
		return s.Container.UID == a.Container.UID && s.AccountAt.Equal(a.Started)
	}
	if slices.ContainsFunc(kept, explained) {
		return nil
	}
	for i := len(kept) - 1; i >= 0; i-- {
		s := &kept[i]
		overlap := !a.Started.After(until(s.Ended)) && !s.Since.After(until(a.Ended))
		if s.Container.UID == a.Container.UID && s.AccountAt.IsZero() && overlap {
			return s
		}
	}
	return nil
}

// trimAccounts drops the accounts of the oldest stalls while they exceed their bound, and keeps the stalls.
func (l *Ledger) trimAccounts() {
	total := 0
	var explained []*memory.Stall
	for _, n := range l.names {
		for i := range n.Stalls {
			if s := &n.Stalls[i]; s.Account != "" {
				explained = append(explained, s)
				total += len(s.Account)
			}
		}
	}
	slices.SortFunc(explained, func(a, b *memory.Stall) int { return stallsByTime(*a, *b) })
	for _, oldest := range explained {
		if total <= stallAccountBytes {
			return
		}
		total -= len(oldest.Account)
		oldest.Account = ""
	}
}

// recordedKill returns the recorded kill of an agent's report; nil: none.
func (l *Ledger) recordedKill(a AgentKill) *memory.OOMKill {
	kills := l.of(a.Container.Container).Kills
	var nearest *memory.OOMKill
	for i := range kills {
		k := &kills[i]
		if k.Container.UID != a.Container.UID {
			continue
		}
		if k.AccountAt.Equal(a.Time) {
			return k
		}
		if k.AccountAt.IsZero() && mayBe(k, a.Time) &&
			(nearest == nil || k.Time.Sub(a.Time).Abs() < nearest.Time.Sub(a.Time).Abs()) {
			nearest = k
		}
	}
	return nearest
}

// mayBe reports whether a recorded kill may be what an agent detected at that time.
func mayBe(k *memory.OOMKill, noticed time.Time) bool {
	late := k.Time.Sub(noticed)
	switch k.Kind {
	case memory.OOMHeapAbort: // not killed by the kernel
		return false
	case memory.OOMChildProcess:
		return -statusLag <= late && late <= counterLead
	case memory.OOMMainProcess, memory.OOMAtStart, memory.OOMPodLimit, memory.OOMSuspected, memory.OOMStall:
	}
	return -statusLag <= late && late <= statusLead
}

// explain adds an agent's report to a kill. Its limit may be from before a change that the ledger knows: it reads one
// that is far from its limit every few seconds, and none whose cgroup is gone. So it proves what was asked for, or that
// less was effective, but never more.
func explain(k *memory.OOMKill, a AgentKill) {
	k.Account, k.AccountAt = a.Account, a.Time
	attribute(k, a)
	asked := max(k.Limit, k.Asked)
	if a.Limit == 0 || k.Limit == 0 || a.Limit > asked || k.Kind == memory.OOMPodLimit {
		return
	}
	k.Limit, k.Asked, k.Proven = asked, 0, true
	if asked > a.Limit+memory.CgroupRounding {
		k.Limit, k.Asked = a.Limit, asked
	}
}

// attribute corrects whose kill it was, the limit's or the node's, as far as the agent knows. What the agent reported
// last of a kill remains.
func attribute(k *memory.OOMKill, a AgentKill) {
	switch {
	case a.AtLimit && k.Unreached > 0:
		k.Limit, k.Unreached, k.Confidence = k.Unreached, 0, memory.High
	case a.ByNode:
		byNode(k)
	}
}

// byNode records that the node ran out of memory: no limit was reached, also not the pod's.
func byNode(k *memory.OOMKill) {
	k.Unreached = max(k.Limit, k.Unreached)
	k.Limit, k.Asked, k.Proven, k.Debugged = 0, 0, false, false
	if k.Kind == memory.OOMPodLimit {
		k.Kind = memory.OOMMainProcess
	}
}

// inferred attributes the kills that only restartCount shows like the one from whose end they were inferred.
func (l *Ledger) inferred(from *memory.OOMKill, a AgentKill) {
	kills := l.of(from.Container.Container).Kills
	for i := range kills {
		k := &kills[i]
		if k.Container == from.Container && k.Seen.Equal(from.Seen) && k.AccountAt.IsZero() && k.Time.Before(from.Time) {
			attribute(k, a)
		}
	}
}

// ofChild returns a new kill of a child process after memfit began to count. The end of a container is left to its
// pod's status.
func (l *Ledger) ofChild(
	a AgentKill, shown func(memory.ContainerRef) memory.Bytes, now time.Time,
) (kill memory.OOMKill, ok bool) {
	if !a.Child || a.Time.Before(l.since) || a.Time.After(now.Add(ahead)) {
		return kill, false
	}
	c := l.cursor(a.Container)
	if c != nil && (!a.Time.After(c.finished) || !a.Time.After(c.countedAt)) {
		return kill, false
	}
	if c = l.counting(c, a.Container); c == nil {
		l.skip(a.Container)
		return kill, false
	}
	c.countedAt = a.Time
	limit, asked := l.limitNow(a.Container, shown)
	kill = memory.OOMKill{
		Container: a.Container, Kind: memory.OOMChildProcess, Time: a.Time, Limit: limit, Asked: asked,
		Confidence: memory.High, Why: "the agent of its node saw the kernel's count rise while the container ran",
		AgentOnly: true,
	}
	explain(&kill, a)
	return kill, true
}

// confirm matches a rise of the kernel's counter with kills that only an agent reported, and returns their number.
func (l *Ledger) confirm(c memory.ContainerRef, rose int64) (confirmed int64) {
	var finished time.Time
	if cursor := l.cursor(c); cursor != nil {
		finished = cursor.finished
	}
	kills := l.of(c.Container).Kills
	for i := range kills {
		k := &kills[i]
		if confirmed < rose && k.AgentOnly && k.Container.UID == c.UID && k.Time.After(finished) {
			k.AgentOnly = false
			confirmed++
		}
	}
	return confirmed
}

// sameAsAgents reports whether a kill of the main process was already counted from an agent's report, as of a child. It
// corrects that entry.
func (l *Ledger) sameAsAgents(kill memory.OOMKill) bool {
	kills := l.of(kill.Container.Container).Kills
	for i := len(kills) - 1; i >= 0; i-- {
		k := &kills[i]
		if !k.AgentOnly || k.Container.UID != kill.Container.UID || kill.Kind == memory.OOMHeapAbort ||
			k.Time.Sub(kill.Time).Abs() > statusLead {
			continue
		}
		account := AgentKill{Time: k.AccountAt, Account: k.Account}
		if k.Proven {
			account.Limit = k.Limit
		}
		explain(&kill, account)
		kill.Seen, kill.Own = k.Seen, k.Own
		*k = kill
		return true
	}
	return false
}

// agentCounted reports whether a kill in this container instance was counted from an agent's report, and the kernel's
// counter was not read since.
func (l *Ledger) agentCounted(ref memory.ContainerRef, t Termination) bool {
	return slices.ContainsFunc(l.of(ref.Container).Kills, func(k memory.OOMKill) bool {
		return k.AgentOnly && k.Container.UID == ref.UID && !k.Time.Before(t.Started.Truncate(time.Second)) &&
			k.Time.Before(t.Finished)
	})
}

// EffectiveLimit returns the effective limit of a container, from the agent's limits of its own and its pod's cgroup
// (0: none). 0: unknown, because the pod's limit is below the sum of its containers'.
func EffectiveLimit(pod *corev1.Pod, container string, own, ofPod memory.Bytes) memory.Bytes {
	if own == 0 || ofPod == 0 {
		return own
	}
	switch others := othersLimit(pod, container); {
	case others == 0:
		return min(own, ofPod)
	case ofPod.Minus(own)+memory.CgroupRounding >= others:
		return own
	}
	return 0
}

// othersLimit returns the part of the pod cgroup's limit for other containers.
func othersLimit(pod *corev1.Pod, container string) memory.Bytes {
	sum, limited := containersLimit(pod)
	if !limited {
		return 0
	}
	if c, _ := constraints.Find(pod, container); c != nil {
		return sum.Minus(statusLimit(pod, c))
	}
	return sum
}
