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

// AgentKill is what the agent of a node saw of the last OOM kill in a container.
type AgentKill struct {
	Container memory.ContainerRef
	// Time is when the agent noticed it, in whole seconds, by the node's clock, which is the kubelet's, too.
	Time time.Time
	// Child: the container went on.
	Child bool
	// Limit is the limit that the kernel held the container to ([EffectiveLimit]). 0: not known, or none.
	Limit memory.Bytes
	// Account is the minute before it in a sentence.
	Account string
}

// AgentStall is what the agent of a node saw of the last stall of a container.
type AgentStall struct {
	Container memory.ContainerRef
	// Started and Ended are by the node's clock, in whole seconds; Ended is zero while it goes on.
	Started, Ended time.Time
	// Limit is the effective limit ([EffectiveLimit]); 0: unknown, or none. High is memory.high where the kernel held it
	// there, below Limit; 0: it did not.
	Limit, High memory.Bytes
	// Anon is the anonymous memory when it was certain.
	Anon memory.Bytes
	// Faults are the major page faults a second, PressurePercent the share of time in which no task could go on.
	Faults, PressurePercent int32
	// Account is the minute before it in a sentence.
	Account string
}

const (
	// stallApart is how far the agent's stall may be from the one that the kubelet's numbers show: both take a minute to
	// be certain, from readings up to 15 s apart, and are over after as long.
	stallApart = 2 * time.Minute
	// stallAccountBytes bounds the accounts of agents about all stalls of a workload.
	stallAccountBytes = 8 << 10
	// statusLead and statusLag are how long before and after the kubelet's time of an end the agent may notice the kill:
	// the kubelet's time comes by way of the container runtime, and a container far below its limit is read every 10 s,
	// or every 16 s on a busy node.
	statusLead = 5 * time.Second
	statusLag  = 20 * time.Second
	// counterLead is how long before the reading of the kernel's counter that showed a kill the agent may notice it: the
	// kubelet's metrics are read every 15 s, and are up to a minute old while an API server or a kubelet is busy.
	counterLead = 2 * time.Minute
	// ahead is how far a node's clock may be in front of memfit's before its agent's reports are not counted.
	ahead = 5 * time.Minute
)

// UpdateAgents adds what agents saw: to kills on file the minute before them and the limit that was really effective,
// which ends the guessing of [Ledger.proven], and kills of children that no other source has reported yet. It returns
// those that are new, oldest first, and those on file that got an account for the first time. The same reports may
// come again with every step. peak and shown are those of [Ledger.UpdateCounters].
func (l *Ledger) UpdateAgents(
	seen []AgentKill, peak, shown func(memory.ContainerRef) memory.Bytes, now time.Time,
) (found, explained []memory.OOMKill) {
	l.begin(now)
	for _, a := range seen {
		a.Time = plausible(a.Time).Truncate(time.Second)
		if k := l.onFile(a); k != nil {
			first := k.Account == ""
			explain(k, a)
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

// ExplainStalls adds what agents saw to the stalls on file, and returns those that got an account for the first time.
// It counts none: [StallWatch.Report] begins one. The same reports may come again with every step.
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

// stallOnFile is the newest stall on file that an agent saw and that has no account yet; nil: none.
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

// trimAccounts drops the accounts of the oldest stalls while they exceed their bound. That they existed stays known.
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

// onFile is the kill on file that an agent saw; nil: none.
func (l *Ledger) onFile(a AgentKill) *memory.OOMKill {
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

// mayBe: a kill on file is one that an agent noticed at that time.
func mayBe(k *memory.OOMKill, noticed time.Time) bool {
	late := k.Time.Sub(noticed)
	switch k.Kind {
	case memory.OOMHeapAbort: // no kernel killed
		return false
	case memory.OOMChildProcess:
		return -statusLag <= late && late <= counterLead
	case memory.OOMMainProcess, memory.OOMAtStart, memory.OOMPodLimit, memory.OOMSuspected, memory.OOMStall:
	}
	return -statusLag <= late && late <= statusLead
}

// explain adds what an agent saw of a kill.
func explain(k *memory.OOMKill, a AgentKill) {
	k.Account, k.AccountAt = a.Account, a.Time
	if a.Limit == 0 || k.Limit == 0 || k.Kind == memory.OOMPodLimit {
		return
	}
	asked := max(k.Limit, k.Asked)
	k.Limit, k.Asked, k.Proven = a.Limit, 0, true
	switch {
	case asked > a.Limit+memory.CgroupRounding:
		k.Asked = asked
	case asked >= a.Limit: // the kernel keeps whole pages of what was asked for
		k.Limit = asked
	}
}

// ofChild is the kill of a child that no other source has reported: after memfit began to count, and not counted
// before. The end of a container shows in its pod's status, which is waited for.
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

// confirm takes kills that only an agent reported for those by which the kernel's counter rose, and returns how many
// those were.
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

// sameAsAgents is true when a kill of the main process was already counted because an agent reported it while its
// container still seemed to go on. The entry then becomes what it was.
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

// agentCounted is true when a kill in this instance of a container was counted because an agent reported it, and the
// kernel's counter was not read since.
func (l *Ledger) agentCounted(ref memory.ContainerRef, t Termination) bool {
	return slices.ContainsFunc(l.of(ref.Container).Kills, func(k memory.OOMKill) bool {
		return k.AgentOnly && k.Container.UID == ref.UID && !k.Time.Before(t.Started.Truncate(time.Second)) &&
			k.Time.Before(t.Finished)
	})
}

// EffectiveLimit is the limit that the kernel held a container to, from the limits that its agent read of its own
// cgroup and of its pod's (0: none). 0: it is unknown, because the pod's cgroup holds less than its containers may
// take together.
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

// othersLimit is how much of the limit of a pod's cgroup is not a container's own.
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
