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

// A container is held by two limits: its own, and the one of its pod's cgroup, which is the sum of the containers'
// limits. A kubelet from 1.34 to 1.37.0 that learns of a resize while the container is down gives the new limit to the
// container when it starts and leaves the pod as it was (kubernetes/kubernetes#138760): the container dies at the old
// limit while its status shows the new one. So what status shows of a container is only what was asked for, until
// something proves it for the pod.

// podShort is by how much the limit of the pod's cgroup is below the sum of its containers' limits. reported is false
// if it is unknown: kubelets before 1.36 do not report what the pod's cgroup has, and none does before the pod runs.
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
		return 0, true // the pod has no limit, or one of its own that follows no container's
	}
	if short = sum.Minus(cgroup); short <= memory.CgroupRounding {
		return 0, true
	}
	return short, true
}

// containersLimit is the limit that Kubernetes gives to a pod of these containers: the sum of those that run side by
// side, or an init container's if that is more. limited is false when a container has none, because then the pod has
// none.
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

// statusLimit is what the kubelet reports that a container has, or will have when it starts; the spec while it reports
// nothing.
func statusLimit(pod *corev1.Pod, c *corev1.Container) memory.Bytes {
	if _, status := constraints.Find(pod, c.Name); status != nil && status.Resources != nil {
		return limitOf(status.Resources.Limits)
	}
	return limitOf(c.Resources.Limits)
}

// proven is the limit that is effective at o for the container and its pod, as far as can be known, and what o shows
// where that is more (0: it is not). c is what was known before; nil: nothing.
func (l *Ledger) proven(o Observation, c *cursor, peak memory.Bytes) (limit, asked memory.Bytes) {
	before, known := l.limitBefore(o, c)
	switch {
	case o.PodReported && o.PodShort == 0:
		return o.Limit, 0
	case o.PodReported:
		least := o.Limit.Minus(o.PodShort) // all that is missing may be missing here
		if known {
			least = max(least, min(before, o.Limit)) // but a limit that was effective and did not change still is
		}
		return unproven(least, o.Limit)
	case !known || before == 0 || o.Limit <= before: // no limit holds nothing, and a container gets a lower one by itself
		return o.Limit, 0
	case c.changedRunning(o):
		return o.Limit, 0
	}
	// Use proves no more than itself: several resizes may have come while the container was down.
	return unproven(max(before, peak), o.Limit)
}

func unproven(limit, asked memory.Bytes) (memory.Bytes, memory.Bytes) {
	if limit >= asked {
		return limit, 0
	}
	return limit, asked
}

// limitBefore is the limit that was effective before o. For a pod that was edited before memfit
// first saw it and has no record of the webhook, this is the limit of other pods that were created at that time.
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

// createdWith is the limit that a pod which was edited before anybody saw it was created with: that of the pods of its
// time. The first pods with another limit and the last ones without are often born in the same second.
func (l *Ledger) createdWith(o Observation) (limit memory.Bytes, known bool) {
	usual := l.of(o.Container.Container)
	switch born := o.PodCreated.Truncate(time.Second); {
	case usual.Since.IsZero() || born.After(usual.Since):
		return usual.Limit, !usual.Born.IsZero()
	case born.Before(usual.Since):
		return usual.Before, true
	}
	return leastLimit(usual.Before, usual.Limit), true
}

// hadOther reports whether a pod without a cursor had another limit before than now.
func (l *Ledger) hadOther(o Observation) bool {
	limit, _ := l.limitBefore(o, nil)
	return limit != o.Limit
}

// changedRunning: the limit changed while one instance ran before and after, or that instance was ended for it. The
// kubelet then changes the pod's cgroup with the container's.
func (c *cursor) changedRunning(o Observation) bool {
	switch {
	case o.Running.IsZero():
		return false
	case c == nil || !c.limited:
		return o.Restarts == 0 // its first instance runs: nearly always it did so when the resize came
	case o.Limit == max(c.limit, c.asked):
		return false
	}
	return c.limitOf == o.Restarts || o.RestartsOnResize && c.limitOf == o.Restarts-1 && endedByKubelet(o)
}

// endedByKubelet: the instance before was ended as the kubelet ends one to give it another size, and did not crash.
func endedByKubelet(o Observation) bool {
	if len(o.Ended) == 0 {
		return false
	}
	last := o.Ended[len(o.Ended)-1]
	return last.Reason != reasonOOMKilled && (last.ExitCode == 0 || last.ExitCode == exitTerm || last.ExitCode == exitKill)
}

// notSeen is the instance of a limit that no instance ran with yet: a number that no container reaches.
const notSeen = math.MaxInt32

// sawLimit remembers the effective limit, so that the death of the instance that lives can be filed with the limit of
// that time.
func (l *Ledger) sawLimit(c *cursor, o Observation, limit, asked memory.Bytes) {
	switch {
	case !o.Running.IsZero():
		l.keepLimit(c, limit, asked, o.Restarts)
	case !c.limited: // what new pods are created with may be another limit before this one is seen to run
		l.keepLimit(c, limit, asked, notSeen)
	case o.PodReported || limit > 0 && limit < c.limit || asked > 0:
		l.keepLimit(c, limit, asked, c.limitOf) // of the next instance
	}
}

// raise is a limit that was seen to be higher. A status is a second late, so that for [memory.RaiseReaches] it is
// unknown whether the raise came before the death of the instance that it was seen with (docs/design/ledger.md).
type raise struct {
	// from is the limit that it replaced, while instance of lived; 0: there was no raise.
	from memory.Bytes
	of   int32
	// seen is when, by memfit's clock.
	seen time.Time
	// unreported: the kubelet did not report then what the pod's cgroup has.
	unreported bool
}

// to reports whether the raise was to a limit of an instance.
func (r *raise) to(limit memory.Bytes, of int32) bool {
	return r.of == of && 0 < r.from && r.from < limit
}

// reaches is from when a death is at the higher limit.
func (r *raise) reaches() time.Time { return r.seen.Add(memory.RaiseReaches) }

// sawRaise remembers when a limit was first seen higher, before that is written down.
func (l *Ledger) sawRaise(c *cursor, o Observation, limit memory.Bytes, now time.Time) {
	if before, known := l.limitBefore(o, c); known && 0 < before && before < limit {
		c.raise = raise{from: before, of: o.Restarts, seen: now, unreported: !o.PodReported}
		c.unread = leastLimit(c.unread, before)
	}
}

// racedRaise reports whether an instance may have died before the raise to its limit reached it: it then died at the
// previous limit. When the higher one is too low as well, the next death shows it.
func (c *cursor) racedRaise(t Termination, limit memory.Bytes) bool {
	return c.raise.to(limit, t.Index) && t.Finished.Before(c.raise.reaches())
}

// disprove takes back a raise whose instance may have died before it, because the pod then keeps the previous limit;
// not where the kubelet reports what the pod's cgroup has.
func (l *Ledger) disprove(o Observation, t Termination, c *cursor) {
	if !o.PodReported && c.limited && c.racedRaise(t, c.limit) {
		l.keepLimit(c, c.raise.from, max(c.limit, c.asked), c.limitOf)
	}
}

// keepLimit writes down what instance of was seen with. When the ledger is full its death is filed with the present
// limit.
func (l *Ledger) keepLimit(c *cursor, limit, asked memory.Bytes, of int32) {
	before := c.cost()
	c.limited, c.limit, c.asked, c.limitOf = true, max(limit, 0), max(asked, 0), max(of, 0)
	if grown := c.cost() - before; grown > 0 && !l.fits(grown) {
		c.limited, c.limit, c.asked, c.limitOf = false, 0, 0, 0
	}
	l.bytes += c.cost() - before
}

// limitOf is the limit instance index had when it died: the one it was seen with, if it was seen. The present status
// may already show the resize that was the answer to the kill, so that an unseen instance counts with the lower of
// before and now. asked is what the spec asked for, where that was not effective.
func (l *Ledger) limitOf(o Observation, c *cursor, index int32, peak memory.Bytes) (limit, asked memory.Bytes) {
	if c.limited && c.limitOf == index {
		if now := leastLimit(c.limit, o.Limit); now < c.limit {
			return now, 0 // lowered since, and as likely before its death as after
		}
		return c.limit, c.asked
	}
	if !c.limited && o.Edited && index == 0 {
		if before, known := l.limitBefore(o, c); known {
			return leastLimit(before, o.Limit), 0
		}
	}
	limit, asked = l.proven(o, c, peak)
	if c.limited && c.limit > 0 && c.limit < limit && !c.changedRunning(o) {
		return unproven(c.limit, o.Limit)
	}
	return limit, asked
}

// leastLimit is the lower of two limits, of which 0 is unlimited.
func leastLimit(a, b memory.Bytes) memory.Bytes {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// EffectiveLimit is the limit that is proven to be effective for a container and its pod, and the one that its status
// shows where that is more (0: it is not). known is false for a container that nothing happened to: what its status
// shows is effective.
func (l *Ledger) EffectiveLimit(c memory.ContainerRef) (limit, asked memory.Bytes, known bool) {
	cursor := l.cursor(c)
	if cursor == nil || !cursor.limited {
		return 0, 0, false
	}
	return cursor.limit, cursor.asked, true
}

// DoubtedUntil is how long a raise that is taken for effective may yet turn out not to be, by the death of its
// instance; zero: it will not.
func (l *Ledger) DoubtedUntil(c memory.ContainerRef) time.Time {
	if cursor := l.cursor(c); cursor != nil && cursor.doubted() {
		return cursor.raise.reaches()
	}
	return time.Time{}
}

// doubted reports whether the death of the instance that lives would take a raise back (see [Ledger.disprove]).
func (c *cursor) doubted() bool {
	return c.raise.unreported && c.asked == 0 && c.raise.to(c.limit, c.limitOf)
}

// proves: the limit that a container died at was effective beyond doubt. Its pod was created with it, or the kubelet
// reports that the pod's cgroup has it now.
func (o *Observation) proves(limit, asked memory.Bytes) bool {
	return limit > 0 && asked == 0 && (!o.Edited || o.PodReported && o.PodShort == 0 && limit == o.Limit)
}

// onlyLabeled: it ended with the kubelet's label, and not by SIGKILL, or while its pod was being ended. The label is
// then of another's kill, if one was killed at the pod's limit.
func (o *Observation) onlyLabeled() bool {
	return slices.ContainsFunc(o.Ended, func(t Termination) bool {
		return t.Reason == reasonOOMKilled && (o.stopped(t) || t.ExitCode != exitKill)
	})
}

// besides reports whether another container was killed at the pod's limit, below its own, while instance t lived.
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
