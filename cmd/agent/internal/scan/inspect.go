// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"time"

	"github.com/memfit/memfit/cmd/agent/internal/pods"
	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/flightrecorder"
	"github.com/memfit/memfit/internal/memory"
)

const (
	// Intervals between inspections of a container. They may be longer, because the [allowance] bounds the cost.
	inspectSame     = time.Hour        // usage has not changed since the last inspection
	inspectMoved    = 20 * time.Second // usage has changed: a user may want to see soon what a burst left
	inspectNear     = 5 * time.Second  // near the limit: the report of a kill has the last inspection
	inspectNearSame = time.Minute      // near the limit, and usage has not changed

	inspectAfter = 10 * time.Second // age at the first inspection: usage must settle after the start
	inspectIdle  = time.Second      // pause after no container was due
)

// inspectNext records the result of the running inspection if it has ended, and starts the next one if one is due.
func (l *Loop) inspectNext(now time.Time) {
	if l.Inspector == nil {
		return
	}
	l.allowance.pay(now)
	select {
	case f := <-l.Inspector.Found(): // there is one at most, because the next inspection starts below
		if c := l.containers[f.Container]; c != nil {
			if o := l.objects[c.pod]; o != nil && c.answers {
				o.trigger = true // a user waits for the result
			}
			c.finding, c.answers = &f, false
		}
		l.inspecting = false
		l.allowance.charge(f.Namespace, f.Spent, ProcessTime(), now)
		l.Metrics.inspected(&f, now)
	default:
	}
	if now.Before(l.idle) || l.inspecting || !l.allowance.urgent.rested(now) {
		return
	}
	c := l.mostDue(now)
	if c == nil {
		l.idle = now.Add(inspectIdle)
		return
	}
	if !l.allowance.of(l.urgent(c, now)).rested(now) {
		return
	}
	pids, all, err := l.Tree.Processes(c.Dir)
	if err != nil {
		return
	}
	pod := &l.objects[c.pod].pod
	inspection := Inspection{
		Container: c.ContainerID, Namespace: pod.Namespace, PIDs: pids, More: !all, Limit: c.limit(),
		WithMap: pod.Request.Map,
	}
	if l.inspecting = l.Inspector.Start(inspection); l.inspecting {
		c.lastInspected, c.usageInspected = now, c.recorder.Usage()
		c.answers, c.request = l.requested(c), pod.Request
	}
}

// requested reports whether the pod of a container requests an inspection that has not been made.
func (l *Loop) requested(c *container) bool {
	o := l.objects[c.pod]
	return o != nil && o.pod.Request != pods.Request{} && o.pod.Request != c.request
}

// awaited reports whether a requested inspection may start. It precedes the first inspections of other containers. For
// a new container it waits until usage has settled, because the request may be in the pod template.
func (l *Loop) awaited(c *container, now time.Time) bool {
	return l.requested(c) && (!c.lastInspected.IsZero() || now.Sub(c.found) >= inspectAfter)
}

// urgent reports whether a container is near its limit, or a requested inspection may start.
func (l *Loop) urgent(c *container, now time.Time) bool {
	return c.urgency == flightrecorder.Near || l.awaited(c, now)
}

// limit returns the effective limit at the last reading; 0: none, or unknown.
func (c *container) limit() memory.Bytes {
	reading, _, at := c.recorder.Last()
	if at.IsZero() || reading.Limit == cgroup.Unlimited {
		return 0
	}
	return reading.Limit
}

// mostDue returns the container that has waited longest relative to its interval; nil: none is due. Containers near
// their limit come first.
func (l *Loop) mostDue(now time.Time) (most *container) {
	worst := 1.0
	for _, c := range l.containers {
		o := l.objects[c.pod]
		if o == nil || o.pod.Declined || !c.gone.IsZero() ||
			l.allowance.of(l.urgent(c, now)).owed[o.pod.Namespace] > 0 {
			continue
		}
		waited := c.waited(now)
		if l.awaited(c, now) && now.Sub(c.lastInspected) >= inspectNear {
			waited = max(waited, nearFirst*float64(now.Sub(c.lastInspected)/inspectNear))
		}
		if waited >= worst {
			most, worst = c, waited
		}
	}
	return most
}

// waited returns the time since a container's last inspection, in units of its interval, plus nearFirst near the limit.
func (c *container) waited(now time.Time) float64 {
	since := now.Sub(c.lastInspected)
	switch {
	case c.urgency == flightrecorder.Near:
		every := inspectNear
		if c.usageUnchanged(stayShare) {
			every = inspectNearSame
		}
		if since < every {
			return 0
		}
		return nearFirst + float64(since)/float64(every)
	case c.lastInspected.IsZero():
		return float64(now.Sub(c.found)) / float64(inspectAfter)
	case c.usageUnchanged(sameShare):
		return float64(since) / float64(inspectSame)
	}
	return float64(since) / float64(inspectMoved)
}

const (
	nearFirst = 1e6 // more than any wait, in units of intervals
	sameShare = 8   // usage that differs by less than 1/sameShare is unchanged, as for writes
	stayShare = 64  // instead of sameShare near the limit, where only an eighth of the limit is left
)

// usageUnchanged reports whether usage differs by less than 1/share from usage at the last inspection.
func (c *container) usageUnchanged(share memory.Bytes) bool {
	usage := c.recorder.Usage()
	return !c.lastInspected.IsZero() && max(usage, c.usageInspected)-min(usage, c.usageInspected) < c.usageInspected/share
}
