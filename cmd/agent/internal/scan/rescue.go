// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/agent/internal/snapshot"
	"github.com/memfit/memfit/internal/flightrecorder"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rescue"
)

const (
	// soon is the time to the limit below which a container is read as often as possible. An alarm needs the growth of
	// four readings, so the interval between readings delays it four times.
	soon = 2 * time.Second
	// alarmsEvery and maxAlarms are the interval and the burst of a node's alarms. A container has at most one a second.
	alarmsEvery  = time.Second
	maxAlarms    = 10
	raisedWithin = 5 * time.Second  // how long the agent waits for a higher limit after an alarm
	inspectedFor = 10 * time.Minute // how long an inspection's maximum need of a container is valid
)

// alarms is the loop's rescue state of all containers.
type alarms struct {
	imminent map[string]*container // about to reach their limit, by ID
	lends    map[string]bool       // results of Rescues in this tick, by namespace
	lendable int                   // number of containers that may borrow, at the last tick
	limiter  *rate.Limiter
	sequence int64 // of the last alarm
	horizon  rescue.Horizon
}

// rescueState is the rescue state of one container.
type rescueState struct {
	watch rescue.Watch
	sent  time.Time    // of the pending alarm; zero: none
	limit memory.Bytes // at that time
}

// Every returns the time until Tick should be called again.
func (l *Loop) Every() time.Duration {
	switch {
	case len(l.alarms.imminent) > 0:
		return l.imminentEvery()
	case l.next.Sub(l.ticked) > idleEvery-TickEvery/2:
		return idleEvery
	}
	return TickEvery
}

// imminentEvery returns the reading interval of containers that are about to reach their limit.
func (l *Loop) imminentEvery() time.Duration {
	return min(flightrecorder.ImminentInterval(len(l.alarms.imminent)), TickEvery)
}

// mayBorrow reports whether memfit may lend memory to a container.
func (l *Loop) mayBorrow(c *container) bool {
	o := l.objects[c.pod]
	if o == nil || l.Rescues == nil {
		return false
	}
	lends, known := l.alarms.lends[o.pod.Namespace]
	if !known {
		lends = l.Rescues(o.pod.Namespace)
		l.alarms.lends[o.pod.Namespace] = lends
	}
	return lends
}

// readImminent reads the usage of the containers that are about to reach their limit.
func (l *Loop) readImminent(now time.Time) {
	for _, c := range l.alarms.imminent {
		if usage, err := c.gauge.Usage(); err == nil { // on error, the next tick notices the end of the container
			sample := usageOnly(usage, now)
			l.Metrics.readings.WithLabelValues("usage").Inc()
			if l.higher(c) {
				if full, err := l.sampleFully(c, now); err == nil {
					sample = full
				}
			}
			l.take(c, sample)
			l.predict(c, sample.Partial, now)
		}
	}
}

// higher reports whether the limit has been raised since the pending alarm.
func (l *Loop) higher(c *container) bool {
	if c.rescue.sent.IsZero() {
		return false
	}
	limit, err := c.gauge.Limit()
	return err == nil && limit > c.rescue.limit
}

// predict sends an alarm if the container is about to reach its limit, and schedules its next reading. partial: the
// last sample has only usage.
func (l *Loop) predict(c *container, partial bool, now time.Time) {
	if !l.mayBorrow(c) {
		delete(l.alarms.imminent, c.ContainerID)
		return
	}
	o := l.objects[c.pod]
	limit := c.ownLimit()
	c.rescue.watch.Add(rescue.Sample{At: now, Demand: c.recorder.Demand(), Limit: limit})
	l.checkRaised(c, o, limit, now)
	stop := c.stop()
	p, due := c.rescue.watch.Due(stop, c.ceiling(now), l.alarms.horizon.Before(l.imminentEvery(), now))
	// The manager refuses alarms far below the limit, and memory.high may be far below the limit.
	due = due && rescue.Near(p.Demand, limit)
	if due && partial { // the growth may be page cache
		if sample, err := l.sampleFully(c, now); err == nil {
			l.take(c, sample)
			l.predict(c, false, now)
			return
		}
	}
	if due {
		l.sendAlarm(c, o, p, now)
	}
	if c.rescue.sent.IsZero() && !c.rescue.watch.MayReach(stop, soon) {
		delete(l.alarms.imminent, c.ContainerID)
		c.due = now.Add(min(c.due.Sub(now), flightrecorder.AlertInterval(l.alarms.lendable)))
		return
	}
	l.alarms.imminent[c.ContainerID], c.due = c, now
}

// sendAlarm sends an alarm, unless the node has sent too many: then the next reading retries.
func (l *Loop) sendAlarm(c *container, o *object, p rescue.Prediction, now time.Time) {
	if l.alarms.limiter == nil {
		l.alarms.limiter = rate.NewLimiter(rate.Every(alarmsEvery), maxAlarms)
	}
	if !l.alarms.limiter.AllowN(now, 1) {
		l.Metrics.alarms.WithLabelValues("suppressed").Inc()
		return
	}
	// Microseconds since 1970 also increase across restarts of the agent; +1 is for a clock that was set back.
	l.alarms.sequence = max(l.alarms.sequence+1, now.UnixMicro())
	before := o.alarm
	claim := c.rescue.watch.Predict(c.ownLimit())
	o.alarm = snapshot.Alarm(c.name, c.ContainerID, l.alarms.sequence, claim)
	if !l.Writer.Alarm(o.target, l.status(o, now).DeepCopy()) {
		o.alarm = before
		l.Metrics.alarms.WithLabelValues("suppressed").Inc()
		return
	}
	c.rescue.watch.Raise(p)
	c.rescue.sent, c.rescue.limit = now, claim.Limit
	l.Log.Info("Limit is about to be reached", "container", c.ContainerID, "pod", c.PodUID,
		"demand", claim.Demand.String(), "limit", claim.Limit.String(), "growthPerSecond", claim.PerSecond.String(),
		"timeToLimit", claim.Left.String())
}

// alarmWritten records the result of the write of an alarm. After an error, the alarm may be sent again.
func (l *Loop) alarmWritten(r snapshot.Result) {
	if r.Err == nil {
		l.Metrics.alarms.WithLabelValues("ok").Inc()
		return
	}
	l.Metrics.alarms.WithLabelValues("failed").Inc()
	l.Log.Error("Could not write an alarm", "error", r.Err)
	if c := l.containers[r.Alarm.ContainerID]; c != nil {
		c.rescue.watch.Forget()
		c.rescue.sent = time.Time{}
	}
}

// checkRaised ends a pending alarm when the limit was raised, or was not raised in time, and triggers a snapshot.
func (l *Loop) checkRaised(c *container, o *object, limit memory.Bytes, now time.Time) {
	if c.rescue.sent.IsZero() {
		return
	}
	took := now.Sub(c.rescue.sent)
	higher := limit > c.rescue.limit
	if !higher && took <= raisedWithin {
		return
	}
	if higher {
		l.alarms.horizon.RecordChain(took, now)
		l.Metrics.rescue.Observe(took.Seconds())
		l.Log.Info("Limit was raised after an alarm", "container", c.ContainerID, "pod", c.PodUID, "limit", limit.String(),
			"after", took.String())
	} else {
		l.Log.Info("Limit was not raised after an alarm", "container", c.ContainerID, "pod", c.PodUID)
	}
	c.rescue.sent, o.trigger = time.Time{}, true
}

// ownLimit returns the effective limit of the container's own cgroup; 0: none, or the limit of the pod is lower, which
// a resize of the container cannot raise.
func (c *container) ownLimit() memory.Bytes {
	if _, pod, _ := c.recorder.Last(); pod < c.limit() {
		return 0
	}
	return c.limit()
}

// stop returns the usage at which the kernel ends growth: the limit, or a lower memory.high, which throttles tasks.
func (c *container) stop() memory.Bytes {
	reading, _, _ := c.recorder.Last()
	return min(c.ownLimit(), reading.High)
}

// ceiling returns the usage at which growth ends by itself: maximum heap plus other inspected memory; 0: unknown.
func (c *container) ceiling(now time.Time) memory.Bytes {
	f := c.finding
	if f == nil || f.Memory == nil || now.Sub(c.lastInspected) > inspectedFor {
		return 0
	}
	heap := f.CollectAt
	if f.Runtime != nil && f.Runtime.MaxHeap != nil {
		heap = memory.FromQuantity(*f.Runtime.MaxHeap)
	}
	if heap == 0 {
		return 0
	}
	rest := memory.FromQuantity(f.Memory.Resident)
	for i := range f.Memory.Parts {
		if part := &f.Memory.Parts[i]; part.Group == v1alpha1.PartHeap {
			rest = rest.Minus(memory.FromQuantity(part.Resident))
		}
	}
	return rest.Plus(heap)
}
