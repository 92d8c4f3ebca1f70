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

// Two limits apply to a container: its own, and the limit of the pod's cgroup, which is the sum of the containers'
// limits. If a resize arrives while the container is down, kubelets 1.34 to 1.37.0 set the container's new limit at its
// start, but not the pod's (kubernetes/kubernetes#138760): the container is killed at the old limit while its status
// shows the new one. So a higher limit in the status is only a requested one until it is proven for the pod.

// podShort returns how much the limit of the pod's cgroup is below the sum of its containers' limits. reported is false
// if the kubelet does not report the pod's cgroup: before 1.36, or before the pod runs.
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
		return 0, true // the pod's cgroup has no limit, or the pod-level one
	}
	if short = sum.Minus(cgroup); short <= memory.CgroupRounding {
		return 0, true
	}
	return short, true
}

// containersLimit returns the largest sum of the limits of containers that run at the same time, which is the limit of
// the pod's cgroup. limited is false if a container has no limit, because the cgroup then has none.
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

// statusLimit returns the limit in a container's status, otherwise the one in its spec; 0: none.
func statusLimit(pod *corev1.Pod, c *corev1.Container) memory.Bytes {
	if _, status := constraints.Find(pod, c.Name); status != nil && status.Resources != nil {
		return limitOf(status.Resources.Limits)
	}
	return limitOf(c.Resources.Limits)
}

// proven returns the limit proven to be effective for the container and its pod at o. asked is o's limit if that is
// higher and not proven; 0: it is not. c is the container's cursor; nil: none.
func (l *Ledger) proven(o Observation, c *cursor, peak memory.Bytes) (limit, asked memory.Bytes) {
	before, known := l.limitBefore(o, c)
	switch {
	case o.PodReported && o.PodShort == 0:
		return o.Limit, 0
	case o.PodReported:
		least := o.Limit.Minus(o.PodShort) // the whole shortage may be this container's
		if known {
			least = max(least, min(before, o.Limit)) // a limit that was effective still is
		}
		return unproven(least, o.Limit)
	case !known || before == 0 || o.Limit <= before: // no limit, or the container's own cgroup enforces the lower limit
		return o.Limit, 0
	case c.changedRunning(o):
		return o.Limit, 0
	}
	// Usage of peak proves a limit of at least peak: the container may have missed several resizes while it was down.
	return unproven(max(before, peak), o.Limit)
}

// unproven returns the proven limit, and asked if that is higher, otherwise 0.
func unproven(limit, asked memory.Bytes) (memory.Bytes, memory.Bytes) {
	if limit >= asked {
		return limit, 0
	}
	return limit, asked
}

// limitBefore returns the limit that was effective before o. For a pod that was edited before its first observation,
// and has no record of the webhook, it returns the limit of other pods that were created at that time.
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

// createdWith returns the limit of other pods that were created when o's pod was; the lower one if the limit changed in
// that second. known is false if there were none.
func (l *Ledger) createdWith(o Observation) (limit memory.Bytes, known bool) {
	usual := l.byName(o.Container.Container)
	switch born := o.PodCreated.Truncate(time.Second); {
	case usual.Since.IsZero() || born.After(usual.Since):
		return usual.Limit, !usual.Born.IsZero()
	case born.Before(usual.Since):
		return usual.Before, true
	}
	return minLimit(usual.Before, usual.Limit), true
}

// limitChanged reports whether a container without a cursor had another limit before.
func (l *Ledger) limitChanged(o Observation) bool {
	limit, _ := l.limitBefore(o, nil)
	return limit != o.Limit
}

// changedRunning reports whether the limit changed while an instance ran, or by a restart for the resize. In both cases
// the kubelet changes the pod's cgroup as well as the container's.
func (c *cursor) changedRunning(o Observation) bool {
	switch {
	case o.Running.IsZero():
		return false
	case c == nil || !c.limited:
		return o.Restarts == 0 // the first instance runs, and almost certainly ran at the resize
	case o.Limit == max(c.limit, c.asked):
		return false
	}
	return c.limitOf == o.Restarts || o.RestartsOnResize && c.limitOf == o.Restarts-1 && endedByKubelet(o)
}

// endedByKubelet reports whether the kubelet may have ended the previous instance for a resize: it did not crash.
func endedByKubelet(o Observation) bool {
	if len(o.Ended) == 0 {
		return false
	}
	last := o.Ended[len(o.Ended)-1]
	return last.Reason != reasonOOMKilled && (last.ExitCode == 0 || last.ExitCode == exitTerm || last.ExitCode == exitKill)
}

// notRun is the instance index of a limit with which no instance was observed running.
const notRun = math.MaxInt32

// recordLimit stores the effective limit, so that a later kill of the running instance is recorded with it.
func (l *Ledger) recordLimit(c *cursor, o Observation, limit, asked memory.Bytes) {
	switch {
	case !o.Running.IsZero():
		l.storeLimit(c, limit, asked, o.Restarts)
	case !c.limited: // now, because pods with another limit may be created before this container runs
		l.storeLimit(c, limit, asked, notRun)
	case o.PodReported || limit > 0 && limit < c.limit || asked > 0:
		l.storeLimit(c, limit, asked, c.limitOf) // of the next instance
	}
}

// raise is an observed rise of a limit. Statuses are up to a second late, so for [memory.RaiseLag] it is unknown
// whether the raise took effect before the end of its instance (docs/design/ledger.md).
type raise struct {
	from       memory.Bytes // the previous limit; 0: no raise
	of         int32        // the index of the instance
	seen       time.Time    // the observation, on memfit's clock
	unreported bool         // the kubelet did not report the pod's cgroup at that time
}

// to reports whether the raise was to this limit of instance of.
func (r *raise) to(limit memory.Bytes, of int32) bool {
	return r.of == of && 0 < r.from && r.from < limit
}

// reaches returns the time from which kills are at the higher limit.
func (r *raise) reaches() time.Time { return r.seen.Add(memory.RaiseLag) }

// recordRaise stores an observed rise of the limit. Call it before recordLimit and storeLimit.
func (l *Ledger) recordRaise(c *cursor, o Observation, limit memory.Bytes, now time.Time) {
	if before, known := l.limitBefore(o, c); known && 0 < before && before < limit {
		c.raise = raise{from: before, of: o.Restarts, seen: now, unreported: !o.PodReported}
		c.unread = minLimit(c.unread, before)
	}
}

// racedRaise reports whether an instance may have been killed before its raise took effect, at the previous limit.
func (c *cursor) racedRaise(t Termination, limit memory.Bytes) bool {
	return c.raise.to(limit, t.Index) && t.Finished.Before(c.raise.reaches())
}

// revertRaise records the previous limit as effective if the instance may have ended before its raise, because the
// pod's cgroup may then keep that limit. It does nothing if the kubelet reports the pod's cgroup.
func (l *Ledger) revertRaise(o Observation, t Termination, c *cursor) {
	if !o.PodReported && c.limited && c.racedRaise(t, c.limit) {
		l.storeLimit(c, c.raise.from, max(c.limit, c.asked), c.limitOf)
	}
}

// storeLimit stores the limit of instance of. If the ledger is full, it stores none, and a kill of that instance is
// recorded with the limit at that time.
func (l *Ledger) storeLimit(c *cursor, limit, asked memory.Bytes, of int32) {
	before := c.cost()
	c.limited, c.limit, c.asked, c.limitOf = true, max(limit, 0), max(asked, 0), max(of, 0)
	if grown := c.cost() - before; grown > 0 && !l.ensureSpace(grown) {
		c.limited, c.limit, c.asked, c.limitOf = false, 0, 0, 0
	}
	l.bytes += c.cost() - before
}

// limitOf returns the effective limit of instance index at its end: the observed one, otherwise the lower of the limits
// before and now, because the current status may already show a resize in response to the kill. asked is the requested
// limit if that was not effective; 0: it was.
func (l *Ledger) limitOf(o Observation, c *cursor, index int32, peak memory.Bytes) (limit, asked memory.Bytes) {
	if c.limited && c.limitOf == index {
		if now := minLimit(c.limit, o.Limit); now < c.limit {
			return now, 0 // lowered before or after its end
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

// minLimit returns the lower of two limits; 0: no limit.
func minLimit(a, b memory.Bytes) memory.Bytes {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// EffectiveLimit returns the limit proven to be effective for a container and its pod. asked is the limit in its status
// if that is higher and not proven; 0: it is not. known is false for a container without events: the limit in its
// status is effective.
func (l *Ledger) EffectiveLimit(c memory.ContainerRef) (limit, asked memory.Bytes, known bool) {
	cursor := l.cursor(c)
	if cursor == nil || !cursor.limited {
		return 0, 0, false
	}
	return cursor.limit, cursor.asked, true
}

// RevertibleUntil returns the time until which an end of the container's instance would revert its last raise (see
// [Ledger.revertRaise]); zero: it would not.
func (l *Ledger) RevertibleUntil(c memory.ContainerRef) time.Time {
	if cursor := l.cursor(c); cursor != nil && cursor.revertible() {
		return cursor.raise.reaches()
	}
	return time.Time{}
}

// revertible reports whether the end of the running instance would revert a raise.
func (c *cursor) revertible() bool {
	return c.raise.unreported && c.asked == 0 && c.raise.to(c.limit, c.limitOf)
}

// proves reports whether the limit at a kill was certainly effective: the pod was created with it, or the kubelet
// reports it for the pod's cgroup.
func (o *Observation) proves(limit, asked memory.Bytes) bool {
	return limit > 0 && asked == 0 && (!o.Edited || o.PodReported && o.PodShort == 0 && limit == o.Limit)
}

// onlyLabeled reports whether an end has the reason OOMKilled without a SIGKILL, or while the pod was terminating. The
// reason may then be from another container's kill at the pod's limit (see [death.labeled]).
func (o *Observation) onlyLabeled() bool {
	return slices.ContainsFunc(o.Ended, func(t Termination) bool {
		return t.Reason == reasonOOMKilled && (o.wasStopping(t) || t.ExitCode != exitKill)
	})
}

// neighborKilled reports whether another container of the pod was killed at the pod's limit during instance t.
func (l *Ledger) neighborKilled(o Observation, t Termination, others []memory.OOMKill) bool {
	atPodLimit := func(k memory.OOMKill) bool {
		return k.Container.UID == o.Container.UID && k.Container.Container != o.Container.Container &&
			(k.Requested > k.Limit || k.Kind == memory.OOMPodLimit) &&
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
