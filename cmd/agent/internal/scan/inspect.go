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
	// Intervals between inspections of a container: inspectSame if its usage has not changed since the last one;
	// inspectMoved if it has, because a user who comes a minute after a burst wants to see what it left; inspectNear near
	// its limit, because that memory is what a kill would show; inspectNearSame near its limit with unchanged usage. The
	// [allowance] bounds all of them.
	inspectSame     = time.Hour
	inspectMoved    = 20 * time.Second
	inspectNear     = 5 * time.Second
	inspectNearSame = time.Minute
	inspectAfter    = 10 * time.Second // age at the first inspection: memory is not settled right after the start
	inspectIdle     = time.Second      // pause of the search for due containers after it found none
)

// inspectNext takes the last finding, and starts to inspect the container that is most due.
func (l *Loop) inspectNext(now time.Time) {
	if l.Inspector == nil {
		return
	}
	l.allowance.pay(now)
	select {
	case f := <-l.Inspector.Found(): // there is one at most, because the next inspection starts below
		if c := l.containers[f.Container]; c != nil {
			if o := l.objects[c.pod]; o != nil && c.answers {
				o.trigger = true // a user waits for it
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
		c.answers, c.request = l.asked(c), pod.Request
	}
}

// asked reports whether the pod of a container requests an inspection that has not been made.
func (l *Loop) asked(c *container) bool {
	o := l.objects[c.pod]
	return o != nil && o.pod.Request != pods.Request{} && o.pod.Request != c.request
}

// awaited reports whether a user waits for the inspection of a container, which then precedes the first inspections of
// all others. One that has just started waits until its usage has settled: the request may be in the pod template.
func (l *Loop) awaited(c *container, now time.Time) bool {
	return l.asked(c) && (!c.lastInspected.IsZero() || now.Sub(c.found) >= inspectAfter)
}

// urgent reports whether a container is near its limit, or a request for its inspection waits.
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

// mostDue returns the container that has waited longest relative to its interval, first those near their limit.
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

// waited returns the time since a container's last inspection, in units of its interval.
func (c *container) waited(now time.Time) float64 {
	since := now.Sub(c.lastInspected)
	switch {
	case c.urgency == flightrecorder.Near:
		every := inspectNear
		if c.usesAsBefore(stayShare) {
			every = inspectNearSame
		}
		if since < every {
			return 0
		}
		return nearFirst + float64(since)/float64(every)
	case c.lastInspected.IsZero():
		return float64(now.Sub(c.found)) / float64(inspectAfter)
	case c.usesAsBefore(sameShare):
		return float64(since) / float64(inspectSame)
	}
	return float64(since) / float64(inspectMoved)
}

const (
	nearFirst = 1e6 // exceeds any wait, in units of intervals
	sameShare = 8   // usage that differs by less than 1/sameShare is unchanged, as for writes
	stayShare = 64  // sameShare near the limit, where only an eighth is left
)

// usesAsBefore reports whether usage is within 1/part of that at the last inspection.
func (c *container) usesAsBefore(share memory.Bytes) bool {
	usage := c.recorder.Usage()
	return !c.lastInspected.IsZero() && max(usage, c.usageInspected)-min(usage, c.usageInspected) < c.usageInspected/share
}
