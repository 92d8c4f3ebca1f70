// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
)

// Two limits apply to a container: its own, and its pod's cgroup limit, which is the sum of the containers' limits.
// If a resize arrives while the container is down, kubelets 1.34 to 1.37.0 give the new limit to the container at its
// start, and leave the pod's unchanged (kubernetes/kubernetes#138760): the container is killed at the old limit while
// its status shows the new one. So the status shows only the requested limit, until evidence proves it for the pod.

// podShort returns how much the limit of the pod's cgroup is below the sum of its containers' limits. reported is false
// if it is unknown: kubelets before 1.36 do not report the pod's cgroup, and none does before the pod runs.
func podShort(pod *corev1.Pod) (short memory.Bytes, reported bool) {
	if pod.Status.Phase != corev1.PodRunning || pod.Status.Resources == nil {
		return 0, false
	}
	cgroup := limitOf(pod.Status.Resources.Limits)
	if cgroup == 0 {
		return 0, false
	}
	sum, limited := containersLimit(pod)
	if !limited || pod.Spec.Resources != nil && limitOf(pod.Spec.Resources.Limits) > 0 {
		return 0, true // the pod has no limit, or its own
	}
	if short = sum.Minus(cgroup); short <= memory.CgroupRounding {
		return 0, true
	}
	return short, true
}

// containersLimit returns the limit of a pod with these containers: the sum of those that run simultaneously, or an
// init container's if higher. limited is false if a container has none, because then the pod has none.
func containersLimit(pod *corev1.Pod) (sum memory.Bytes, limited bool) {
	limited = true
	sum = constraints.Together(pod, func(c *corev1.Container) memory.Size {
		limit := statusLimit(pod, c)
		limited = limited && limit > 0
		return memory.Size{Limit: limit}
	}).Limit
	if !limited {
		return 0, false
	}
	return sum, true
}

// statusLimit returns the limit that the kubelet reports for a container now or at its start; the spec's without a
// report.
func statusLimit(pod *corev1.Pod, c *corev1.Container) memory.Bytes {
	if _, status := constraints.Find(pod, c.Name); status != nil && status.Resources != nil {
		return limitOf(status.Resources.Limits)
	}
	return limitOf(c.Resources.Limits)
}

// proven returns the limit known to be effective at o for the container and its pod, and the limit in o if that is
// higher (0: it is not). c is the earlier state; nil: none.
func (l *Ledger) proven(o Observation, c *cursor, peak memory.Bytes) (limit, asked memory.Bytes) {
	before, known := l.limitBefore(o, c)
	switch {
	case o.PodReported && o.PodShort == 0:
		return o.Limit, 0
	case o.PodReported:
		least := o.Limit.Minus(o.PodShort) // the whole shortage may be this container's
		if known {
			least = max(least, min(before, o.Limit)) // but an unchanged effective limit still is
		}
		return unproven(least, o.Limit)
	case !known || before == 0 || o.Limit <= before: // none, or lower: enforced by the container itself
		return o.Limit, 0
	case c.changedRunning(o):
		return o.Limit, 0
	}
	// Use proves only its own amount: several resizes may have come while the container was down.
	return unproven(max(before, peak), o.Limit)
}

func unproven(limit, asked memory.Bytes) (memory.Bytes, memory.Bytes) {
	if limit >= asked {
		return limit, 0
	}
	return limit, asked
}

// limitBefore returns the limit that was effective before o. For a pod that was edited before memfit first saw it and
// has no record of the webhook, this is the limit of other pods that were created at that time.
func (l *Ledger) limitBefore(o Observation, c *cursor) (memory.Bytes, bool) {
	switch {
	case c != nil && c.limited:
		return c.limit, true
	case !o.Edited:
		return o.Limit, true
	case o.Before > 0:
		return o.Before, true
	}
	return l.createdWith(o)
}

// createdWith returns the limit at creation of a pod that was edited before memfit saw it: the limit of other pods of
// that time. The first pods with a new limit and the last with the old one are often created in the same second.
func (l *Ledger) createdWith(o Observation) (limit memory.Bytes, known bool) {
	usual := l.of(o.Container.Container)
	switch born := o.PodCreated.Truncate(time.Second); {
	case usual.Since.IsZero() || born.After(usual.Since):
		return usual.Limit, !usual.Born.IsZero()
	case born.Before(usual.Since):
		return usual.Before, true
	}
	return minLimit(usual.Before, usual.Limit), true
}

// hadOther reports whether a pod without a cursor had another limit before.
func (l *Ledger) hadOther(o Observation) bool {
	limit, _ := l.limitBefore(o, nil)
	return limit != o.Limit
}

// changedRunning reports whether the limit changed while an instance ran, or ended the instance. The kubelet then
// changes the pod's cgroup with the container's.
func (c *cursor) changedRunning(o Observation) bool {
	switch {
	case o.Running.IsZero():
		return false
	case c == nil || !c.limited:
		return o.Restarts == 0 // its first instance runs, and almost certainly ran at the resize
	case o.Limit == max(c.limit, c.asked):
		return false
	}
	return c.limitOf == o.Restarts || o.RestartsOnResize && c.limitOf == o.Restarts-1 && endedByKubelet(o)
}

// endedByKubelet reports whether the previous instance was ended by the kubelet for a resize, and did not crash.
func endedByKubelet(o Observation) bool {
	if len(o.Ended) == 0 {
		return false
	}
	last := o.Ended[len(o.Ended)-1]
	return last.Reason != reasonOOMKilled && (last.ExitCode == 0 || last.ExitCode == exitTerm || last.ExitCode == exitKill)
}

// notSeen is the instance of a limit with which no instance has run yet, an unreachable number.
const notSeen = math.MaxInt32

// sawLimit stores the effective limit, so that a later kill of the running instance is recorded with it.
func (l *Ledger) sawLimit(c *cursor, o Observation, limit, asked memory.Bytes) {
	switch {
	case !o.Running.IsZero():
		l.keepLimit(c, limit, asked, o.Restarts)
	case !c.limited: // new pods may be created with another limit before this one is seen running
		l.keepLimit(c, limit, asked, notSeen)
	case o.PodReported || limit > 0 && limit < c.limit || asked > 0:
		l.keepLimit(c, limit, asked, c.limitOf) // of the next instance
	}
}

// raise is an observed higher limit. A status is a second late, so for [memory.RaiseReaches] it is unknown whether the
// raise came before the end of its instance (docs/design/ledger.md).
type raise struct {
	// from is the limit that it replaced, during instance of; 0: no raise.
	from memory.Bytes
	of   int32
	// seen is the time on memfit's clock.
	seen time.Time
	// unreported is true if the kubelet did not report the pod's cgroup at that time.
	unreported bool
}

// to reports whether the raise was to this instance's limit.
func (r *raise) to(limit memory.Bytes, of int32) bool {
	return r.of == of && 0 < r.from && r.from < limit
}

// reaches returns the time from which a kill is at the higher limit.
func (r *raise) reaches() time.Time { return r.seen.Add(memory.RaiseReaches) }

// sawRaise stores when a limit was first seen higher, before keepLimit.
func (l *Ledger) sawRaise(c *cursor, o Observation, limit memory.Bytes, now time.Time) {
	if before, known := l.limitBefore(o, c); known && 0 < before && before < limit {
		c.raise = raise{from: before, of: o.Restarts, seen: now, unreported: !o.PodReported}
		c.unread = minLimit(c.unread, before)
	}
}

// racedRaise reports whether an instance may have been killed before its raise took effect, at the previous limit. If
// the higher one is too low as well, the next kill shows it.
func (c *cursor) racedRaise(t Termination, limit memory.Bytes) bool {
	return c.raise.to(limit, t.Index) && t.Finished.Before(c.raise.reaches())
}

// disprove reverts a raise whose instance may have ended before it, because the pod then keeps the previous limit; not
// if the kubelet reports the pod's cgroup.
func (l *Ledger) disprove(o Observation, t Termination, c *cursor) {
	if !o.PodReported && c.limited && c.racedRaise(t, c.limit) {
		l.keepLimit(c, c.raise.from, max(c.limit, c.asked), c.limitOf)
	}
}

// keepLimit stores the limit of instance of. If the ledger is full, its kill is recorded with the current limit.
func (l *Ledger) keepLimit(c *cursor, limit, asked memory.Bytes, of int32) {
	before := c.cost()
	c.limited, c.limit, c.asked, c.limitOf = true, max(limit, 0), max(asked, 0), max(of, 0)
	if grown := c.cost() - before; grown > 0 && !l.fits(grown) {
		c.limited, c.limit, c.asked, c.limitOf = false, 0, 0, 0
	}
	l.bytes += c.cost() - before
}

// limitOf returns the limit of instance index at its end: the observed one, if any. The current status may already show
// a resize in response to the kill, so an unobserved instance gets the lower of the limits before and now. asked is the
// spec's limit if it was not effective.
func (l *Ledger) limitOf(o Observation, c *cursor, index int32, peak memory.Bytes) (limit, asked memory.Bytes) {
	if c.limited && c.limitOf == index {
		if now := minLimit(c.limit, o.Limit); now < c.limit {
			return now, 0 // lowered, perhaps before or after its end
		}
		return c.limit, c.asked
	}
	if !c.limited && o.Edited && index == 0 {
		if before, known := l.limitBefore(o, c); known {
			return minLimit(before, o.Limit), 0
		}
	}
	limit, asked = l.proven(o, c, peak)
	if c.limited && c.limit > 0 && c.limit < limit && !c.changedRunning(o) {
		return unproven(c.limit, o.Limit)
	}
	return limit, asked
}

// minLimit returns the lower of two limits; 0 is unlimited.
func minLimit(a, b memory.Bytes) memory.Bytes {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// EffectiveLimit returns the limit proven to be effective for a container and its pod, and the one in its status if
// that is higher (0: it is not). known is false for a container without events: the limit in its status is effective.
func (l *Ledger) EffectiveLimit(c memory.ContainerRef) (limit, asked memory.Bytes, known bool) {
	cursor := l.cursor(c)
	if cursor == nil || !cursor.limited {
		return 0, 0, false
	}
	return cursor.limit, cursor.asked, true
}

// DoubtedUntil returns when the end of its instance can no longer disprove a raise that counts as effective; zero: no
// doubt.
func (l *Ledger) DoubtedUntil(c memory.ContainerRef) time.Time {
	if cursor := l.cursor(c); cursor != nil && cursor.doubted() {
		return cursor.raise.reaches()
	}
	return time.Time{}
}

// doubted reports whether the end of the running instance would revert a raise (see [Ledger.disprove]).
func (c *cursor) doubted() bool {
	return c.raise.unreported && c.asked == 0 && c.raise.to(c.limit, c.limitOf)
}

// proves reports whether the limit at a kill was effective beyond doubt: the pod was created with it, or the kubelet
// reports it for the pod's cgroup.
func (o *Observation) proves(limit, asked memory.Bytes) bool {
	return limit > 0 && asked == 0 && (!o.Edited || o.PodReported && o.PodShort == 0 && limit == o.Limit)
}

// onlyLabeled reports whether it ended with the kubelet's label without SIGKILL, or while its pod was terminating. The
// label may then be of another container's kill at the pod's limit.
func (o *Observation) onlyLabeled() bool {
	return slices.ContainsFunc(o.Ended, func(t Termination) bool {
		return t.Reason == reasonOOMKilled && (o.stopped(t) || t.ExitCode != exitKill)
	})
}

// besides reports whether another container was killed at the pod's limit, below its own, during instance t.
func (l *Ledger) besides(o Observation, t Termination, others []memory.OOMKill) bool {
	atPodLimit := func(k memory.OOMKill) bool {
		return k.Container.UID == o.Container.UID && k.Container.Container != o.Container.Container &&
			(k.Asked > k.Limit || k.Kind == memory.OOMPodLimit) &&
			!k.Time.Before(t.Started.Truncate(time.Second)) && !k.Time.After(t.Finished)
	}
	if slices.ContainsFunc(others, atPodLimit) {
		return true
	}
	for _, n := range l.names {
		if slices.ContainsFunc(n.Kills, atPodLimit) {
			return true
		}
	}
	return false
}
