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
	Time      time.Time    // when the agent detected the kill, in whole seconds, on the clock of the node and its kubelet
	Child     bool         // only a child process was killed; the container continued
	Limit     memory.Bytes // the effective limit ([EffectiveLimit]); 0: unknown, or none
	AtLimit   bool         // the kernel counted that a limit was reached
	ByNode    bool         // the kernel counted no limit reached, and the node had MemoryPressure ([UnderPressureAt])
	Account   string       // describes the minute before the kill in a sentence
}

// AgentStall is the agent's record of the last stall of a container.
type AgentStall struct {
	Container memory.ContainerRef
	// Started and Ended are on the node's clock, in whole seconds; Ended is zero while the stall continues.
	Started, Ended  time.Time
	Limit           memory.Bytes // the effective limit ([EffectiveLimit]); 0: unknown, or none
	High            memory.Bytes // memory.high if the container stalled there, below Limit; 0: at Limit
	Anon            memory.Bytes // the anonymous memory when the agent confirmed the stall
	Faults          int32        // major page faults per second
	PressurePercent int32        // the percentage of time in which all tasks waited for memory
	Account         string       // describes the minute before the stall in a sentence
}

const (
	// stallApart is the longest time between the same stall as found by the agent and in the kubelet's metrics: each finds
	// the start and the end by a minute of readings up to 15 s apart.
	stallApart = 2 * time.Minute
	// stallAccountBytes bounds the accounts of all stalls of a workload, in bytes.
	stallAccountBytes = 8 << 10
	// statusLead and statusLag bound how long before and after the kubelet's time of an end the agent detects the kill.
	// The kubelet's time comes from the container runtime; the agent reads a container far below its limit every 10 s, or
	// every 16 s on a busy node.
	statusLead = 5 * time.Second
	statusLag  = 20 * time.Second
	// counterLead bounds how long before a reading of the kernel's counter the agent detects the kill. The kubelet's
	// metrics are read every 15 s, and are up to a minute old while an API server or a kubelet is busy.
	counterLead = 2 * time.Minute
	// ahead is how far a node's clock may be ahead of memfit's; reports from further ahead are ignored.
	ahead = 5 * time.Minute
)

// UpdateAgents adds the reports of agents. A recorded kill gets its account, and the agent's effective limit instead of
// the one that [Ledger.proven] assumed. A kill of a child process without a record is new. It returns the new kills,
// oldest first, and the recorded ones that got their first account. Each report may be added repeatedly. For peak and
// shown see [Ledger.UpdateCounters].
func (l *Ledger) UpdateAgents(
	seen []AgentKill, peak, shown func(memory.ContainerRef) memory.Bytes, now time.Time,
) (found, explained []memory.OOMKill) {
	l.begin(now)
	for _, a := range seen {
		a.Time = plausible(a.Time).Truncate(time.Second)
		if k := l.recordedKill(a); k != nil {
			first := k.Account == ""
			explain(k, a)
			l.attributeInferred(k, a)
			if first {
				explained = append(explained, *k)
			}
			continue
		}
		if k, ok := l.newChildKill(a, shown, now); ok {
			if peak != nil {
				k.Peak = peak(a.Container)
			}
			found = append(found, k)
		}
	}
	l.trimDetails()
	return l.record(found, now), explained
}

// ExplainStalls adds the reports of agents to recorded stalls, and returns the stalls that got an account. It counts no
// stalls; [StallWatch.Report] does. Each report may be added repeatedly.
func (l *Ledger) ExplainStalls(seen []AgentStall, now time.Time) (explained []memory.Stall) {
	for _, a := range seen {
		a.Started = plausible(a.Started).Truncate(time.Second)
		if s := l.unexplainedStall(a, now); s != nil {
			s.Account, s.AccountAt = a.Account, a.Started
			explained = append(explained, *s)
		}
	}
	l.trimAccounts()
	return explained
}

// unexplainedStall returns the newest recorded stall that an agent's report is about and that has no account; nil:
// none.
func (l *Ledger) unexplainedStall(a AgentStall, now time.Time) *memory.Stall {
	until := func(ended time.Time) time.Time {
		if ended.IsZero() {
			ended = now
		}
		return ended.Add(stallApart)
	}
	kept := l.byName(a.Container.Container).Stalls
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

// trimAccounts drops the accounts of the oldest stalls while all accounts exceed their bound. The stalls remain.
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

// recordedKill returns the recorded kill that an agent's report is about; nil: none.
func (l *Ledger) recordedKill(a AgentKill) *memory.OOMKill {
	kills := l.byName(a.Container.Container).Kills
	var nearest *memory.OOMKill
	for i := range kills {
		k := &kills[i]
		if k.Container.UID != a.Container.UID {
			continue
		}
		if k.AccountAt.Equal(a.Time) {
			return k
		}
		if k.AccountAt.IsZero() && matchesKill(k, a.Time) &&
			(nearest == nil || k.Time.Sub(a.Time).Abs() < nearest.Time.Sub(a.Time).Abs()) {
			nearest = k
		}
	}
	return nearest
}

// matchesKill reports whether an agent that noticed a kill at a time may have noticed the recorded one.
func matchesKill(k *memory.OOMKill, noticed time.Time) bool {
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

// explain adds an agent's report to a kill. The agent's limit may be older than a resize that the ledger knows, because
// the agent reads limits only every few seconds. So it can prove that the requested limit or a lower one was effective,
// and never that a higher one was.
func explain(k *memory.OOMKill, a AgentKill) {
	k.Account, k.AccountAt = a.Account, a.Time
	attribute(k, a)
	asked := max(k.Limit, k.Requested)
	if a.Limit == 0 || k.Limit == 0 || a.Limit > asked || k.Kind == memory.OOMPodLimit {
		return
	}
	k.Limit, k.Requested, k.Proven = asked, 0, true
	if asked > a.Limit+memory.CgroupRounding {
		k.Limit, k.Requested = a.Limit, asked
	}
}

// attribute corrects whether the limit or the node caused a kill, as far as the agent knows. A later report of the
// agent replaces an earlier one.
func attribute(k *memory.OOMKill, a AgentKill) {
	switch {
	case a.AtLimit && k.Unreached > 0:
		k.Limit, k.Unreached, k.Confidence = k.Unreached, 0, memory.High
	case a.ByNode:
		byNode(k)
	}
}

// byNode records that the node ran out of memory, and neither the container's nor the pod's limit was reached.
func byNode(k *memory.OOMKill) {
	k.Unreached = max(k.Limit, k.Unreached)
	k.Limit, k.Requested, k.Proven, k.Debugged = 0, 0, false, false
	if k.Kind == memory.OOMPodLimit {
		k.Kind = memory.OOMMainProcess
	}
}

// attributeInferred attributes the kills that were inferred from the end of kill from (see [Ledger.inferHidden]).
func (l *Ledger) attributeInferred(from *memory.OOMKill, a AgentKill) {
	kills := l.byName(from.Container.Container).Kills
	for i := range kills {
		k := &kills[i]
		if k.Container == from.Container && k.Seen.Equal(from.Seen) && k.AccountAt.IsZero() && k.Time.Before(from.Time) {
			attribute(k, a)
		}
	}
}

// newChildKill returns an agent's kill of a child process as a new one; ok is false if it is known, impossible, or from
// before the ledger. Ends of containers are counted only from the pod's status.
func (l *Ledger) newChildKill(
	a AgentKill, shown func(memory.ContainerRef) memory.Bytes, now time.Time,
) (kill memory.OOMKill, ok bool) {
	if !a.Child || a.Time.Before(l.since) || a.Time.After(now.Add(ahead)) {
		return kill, false
	}
	c := l.cursor(a.Container)
	if c != nil && (!a.Time.After(c.finished) || !a.Time.After(c.countedAt)) {
		return kill, false
	}
	if c = l.withCounter(c, a.Container); c == nil {
		l.markNotFollowed(a.Container)
		return kill, false
	}
	c.countedAt = a.Time
	limit, asked := l.limitNow(a.Container, shown)
	kill = memory.OOMKill{
		Container: a.Container, Kind: memory.OOMChildProcess, Time: a.Time, Limit: limit, Requested: asked,
		Confidence: memory.High, Why: "the kernel's counter rose while the container ran, as its node's agent reported",
		AgentOnly: true,
	}
	explain(&kill, a)
	return kill, true
}

// confirmAgentKills matches a rise of the kernel's counter with kills that so far only an agent reported, and returns
// the number of matched kills.
func (l *Ledger) confirmAgentKills(c memory.ContainerRef, rose int64) (confirmed int64) {
	var finished time.Time
	if cursor := l.cursor(c); cursor != nil {
		finished = cursor.finished
	}
	kills := l.byName(c.Container).Kills
	for i := range kills {
		k := &kills[i]
		if confirmed < rose && k.AgentOnly && k.Container.UID == c.UID && k.Time.After(finished) {
			k.AgentOnly = false
			confirmed++
		}
	}
	return confirmed
}

// sameAsAgents reports whether a kill of the main process was already counted from an agent's report, as a child's. If
// so, it corrects the recorded kill.
func (l *Ledger) sameAsAgents(kill memory.OOMKill) bool {
	kills := l.byName(kill.Container.Container).Kills
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
		kill.Seen, kill.LimitWithoutLoan = k.Seen, k.LimitWithoutLoan
		*k = kill
		return true
	}
	return false
}

// agentCounted reports whether a kill in this container instance was counted from an agent's report, and the kernel's
// counter was not read since.
func (l *Ledger) agentCounted(ref memory.ContainerRef, t Termination) bool {
	return slices.ContainsFunc(l.byName(ref.Container).Kills, func(k memory.OOMKill) bool {
		return k.AgentOnly && k.Container.UID == ref.UID && !k.Time.Before(t.Started.Truncate(time.Second)) &&
			k.Time.Before(t.Finished)
	})
}

// EffectiveLimit returns the effective limit of a container from the limits of its own and its pod's cgroup, as read by
// the agent (0: none). It returns 0 (unknown) if the pod's limit is below the sum of its containers' limits.
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
