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
	// soon: a container that may reach its limit within this time is read as often as possible. Growth is known after
	// four readings, so each interval delays the alarm four times.
	soon = 2 * time.Second
	// alarmsEvery and maxAlarms bound the alarms of a node. A container sends at most one a second.
	alarmsEvery  = time.Second
	maxAlarms    = 10
	raisedWithin = 5 * time.Second  // how long the agent waits for a higher limit after an alarm
	inspectedFor = 10 * time.Minute // how long an inspection's maximum need of a container is valid
)

// alarms is the loop's rescue state of all containers.
type alarms struct {
	imminent map[string]*container // about to reach their limit, by ID
	lends    map[string]bool       // whether containers of a namespace may borrow, at the last tick
	lendable int                   // number of such containers, at the last tick
	limiter  *rate.Limiter
	sequence int64
	horizon  rescue.Horizon
}

// rescued is the rescue state of one container.
type rescued struct {
	watch rescue.Watch
	sent  time.Time    // of the pending alarm; zero: none
	limit memory.Bytes // at that time
}

// Every returns how soon Tick should be called again.
func (l *Loop) Every() time.Duration {
	switch {
	case len(l.alarms.imminent) > 0:
		return l.imminentEvery()
	case l.next.Sub(l.ticked) > idleEvery-TickEvery/2:
		return idleEvery
	}
	return TickEvery
}

// imminentEvery returns the interval of containers that are about to reach their limit.
func (l *Loop) imminentEvery() time.Duration {
	return min(flightrecorder.Imminent(len(l.alarms.imminent)), TickEvery)
}

// mayBorrow reports whether a container may borrow memory.
func (l *Loop) mayBorrow(c *container) bool {
	o := l.objects[c.pod]
	if o == nil || l.Rescues == nil {
		return false
	}
	lends, asked := l.alarms.lends[o.pod.Namespace]
	if !asked {
		lends = l.Rescues(o.pod.Namespace)
		l.alarms.lends[o.pod.Namespace] = lends
	}
	return lends
}

// readImminent reads the usage of the containers that are about to reach their limit.
func (l *Loop) readImminent(now time.Time) {
	for _, c := range l.alarms.imminent {
		if usage, err := c.gauge.Usage(); err == nil { // otherwise the next tick notices its end
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

// higher reports whether the limit is above the pending alarm's limit.
func (l *Loop) higher(c *container) bool {
	if c.rescue.sent.IsZero() {
		return false
	}
	limit, err := c.gauge.Limit()
	return err == nil && limit > c.rescue.limit
}

// predict raises an alarm if the container is about to reach its limit, and decides whether it is read again soon.
// partial: the last sample has only usage.
func (l *Loop) predict(c *container, partial bool, now time.Time) {
	if !l.mayBorrow(c) {
		delete(l.alarms.imminent, c.ContainerID)
		return
	}
	o := l.objects[c.pod]
	limit := c.ownLimit()
	c.rescue.watch.Add(rescue.Sample{At: now, Demand: c.recorder.Demand(), Limit: limit})
	l.raised(c, o, limit, now)
	stop := c.stop()
	p, due := c.rescue.watch.Due(stop, c.ceiling(now), l.alarms.horizon.Before(l.imminentEvery(), now))
	// memory.high may be below half of the limit, and the manager decides by the limit.
	due = due && rescue.Near(p.Demand, limit)
	if due && partial { // the growth may be page cache
		if sample, err := l.sampleFully(c, now); err == nil {
			l.take(c, sample)
			l.predict(c, false, now)
			return
		}
	}
	if due {
		l.alarm(c, o, p, now)
	}
	if c.rescue.sent.IsZero() && !c.rescue.watch.Soon(stop, soon) {
		delete(l.alarms.imminent, c.ContainerID)
		c.due = now.Add(min(c.due.Sub(now), flightrecorder.Alert(l.alarms.lendable)))
		return
	}
	l.alarms.imminent[c.ContainerID], c.due = c, now
}

// alarm sends an alarm, unless the node has sent too many: then the next reading tries again.
func (l *Loop) alarm(c *container, o *object, p rescue.Prediction, now time.Time) {
	if l.alarms.limiter == nil {
		l.alarms.limiter = rate.NewLimiter(rate.Every(alarmsEvery), maxAlarms)
	}
	if !l.alarms.limiter.AllowN(now, 1) {
		l.Metrics.alarms.WithLabelValues("suppressed").Inc()
		return
	}
	// Microseconds since 1970 keep rising across restarts of the agent; the increment helps where the clock was set back.
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

// alarmed records the result of an alarm. A failed one is sent again.
func (l *Loop) alarmed(r snapshot.Result) {
	if r.Err == nil {
		l.Metrics.alarms.WithLabelValues("ok").Inc()
		return
	}
	l.Metrics.alarms.WithLabelValues("failed").Inc()
	l.Log.Error("Writing an alarm", "error", r.Err)
	if c := l.containers[r.Alarm.ContainerID]; c != nil {
		c.rescue.watch.Forget()
		c.rescue.sent = time.Time{}
	}
}

// raised records a higher limit after an alarm, and triggers the ordinary snapshot.
func (l *Loop) raised(c *container, o *object, limit memory.Bytes, now time.Time) {
	if c.rescue.sent.IsZero() {
		return
	}
	took := now.Sub(c.rescue.sent)
	higher := limit > c.rescue.limit
	if !higher && took <= raisedWithin {
		return
	}
	if higher {
		l.alarms.horizon.Took(took, now)
		l.Metrics.rescue.Observe(took.Seconds())
		l.Log.Info("Limit was raised after an alarm", "container", c.ContainerID, "pod", c.PodUID, "limit", limit.String(),
			"after", took.String())
	} else {
		l.Log.Info("Limit was not raised after an alarm", "container", c.ContainerID, "pod", c.PodUID)
	}
	c.rescue.sent, o.trigger = time.Time{}, true
}

// ownLimit returns the effective limit of the container's own cgroup; 0: no limit, or the pod's is lower, which a
// resize of the container cannot raise.
func (c *container) ownLimit() memory.Bytes {
	if _, pod, _ := c.recorder.Last(); pod < c.limit() {
		return 0
	}
	return c.limit()
}

// stop returns where growth ends: the kernel kills at the limit, and nearly stops tasks above memory.high.
func (c *container) stop() memory.Bytes {
	reading, _, _ := c.recorder.Last()
	return min(c.ownLimit(), reading.High)
}

// ceiling returns where growth stops by itself: the maximum heap and other memory at the inspection; 0: unknown.
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
