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
	// explainSame is how often a container is inspected whose usage has not changed since the last inspection;
	// explainMoved, where it has, because a user who comes a minute after a burst wants to see what it left; explainNear,
	// while it is near its limit, because what fills it then is what fills it when it is killed; explainStays, where it
	// stays near its limit with the same usage. The [allowance] bounds all of them.
	explainSame  = time.Hour
	explainMoved = 20 * time.Second
	explainNear  = 5 * time.Second
	explainStays = time.Minute
	// explainAfter is how old a container gets before the first look: most of what starts is not what it will be.
	explainAfter = 10 * time.Second
	// explainIdle is for how long no container is searched that is due, after none was.
	explainIdle = time.Second
)

// explain starts inspecting the container that is most due, and takes what was found.
func (l *Loop) explain(now time.Time) {
	if l.Explain == nil {
		return
	}
	l.allowance.pay(now)
	for {
		select {
		case f := <-l.Explain.Found():
			if c := l.containers[f.Container]; c != nil {
				if o := l.objects[c.pod]; o != nil && c.answers {
					o.trigger = true // a user waits for it
				}
				c.finding, c.answers = &f, false
			}
			l.inspecting = false
			l.allowance.charge(f.Namespace, f.Spent, ProcessTime(), now)
			l.Metrics.inspected(&f, now)
			continue
		default:
		}
		break
	}
	if now.Before(l.idle) || l.inspecting || !l.allowance.rested(true, now) {
		return
	}
	c := l.mostDue(now)
	if c == nil {
		l.idle = now.Add(explainIdle)
		return
	}
	if !l.allowance.rested(l.urgent(c, now), now) {
		return
	}
	pids, all, err := l.Tree.Processes(c.Dir)
	if err != nil {
		return
	}
	pod := &l.objects[c.pod].pod
	look := Look{
		Container: c.ContainerID, Namespace: pod.Namespace, PIDs: pids, More: !all, Limit: c.limit(),
		Drawn: pod.Request.Map,
	}
	if l.inspecting = l.Explain.Start(look); l.inspecting {
		c.explained, c.explainedAt = now, c.recorder.Usage()
		c.answers, c.request = l.asked(c), pod.Request
	}
}

// asked reports whether the pod of a container requests another inspection than the last one.
func (l *Loop) asked(c *container) bool {
	o := l.objects[c.pod]
	return o != nil && o.pod.Request != pods.Request{} && o.pod.Request != c.request
}

// awaited reports whether a user waits for the inspection of a container. A container that has just started is left
// alone until its usage has settled, because the request may be in the template of its pod. After that it does not wait
// for the first inspections of all others, which take minutes on a node where many containers have started.
func (l *Loop) awaited(c *container, now time.Time) bool {
	return l.asked(c) && (!c.explained.IsZero() || now.Sub(c.found) >= explainAfter)
}

// urgent reports whether a container is near its limit, or a request for its inspection waits.
func (l *Loop) urgent(c *container, now time.Time) bool {
	return c.urgency == flightrecorder.Near || l.awaited(c, now)
}

// limit is what was effective when the container was read last; 0: none, or not known.
func (c *container) limit() memory.Bytes {
	reading, _, at := c.recorder.Last()
	if at.IsZero() || reading.Limit == cgroup.Unlimited {
		return 0
	}
	return reading.Limit
}

// mostDue is the container that has waited longest in units of its own interval, of those near their limit if there are
// any; nil: none is due.
func (l *Loop) mostDue(now time.Time) (most *container) {
	worst := 1.0
	for _, c := range l.containers {
		o := l.objects[c.pod]
		if o == nil || o.pod.Declined || !c.gone.IsZero() || l.allowance.owes(o.pod.Namespace, l.urgent(c, now)) {
			continue
		}
		waited := c.waited(now)
		if l.awaited(c, now) && now.Sub(c.explained) >= explainNear {
			waited = max(waited, nearFirst*float64(now.Sub(c.explained)/explainNear))
		}
		if waited >= worst {
			most, worst = c, waited
		}
	}
	return most
}

// nearFirst is more than others can have waited, in units of their intervals.
const nearFirst = 1e6

// waited is how long a container has not been inspected, in units of how often it should be.
func (c *container) waited(now time.Time) float64 {
	since := now.Sub(c.explained)
	switch {
	case c.urgency == flightrecorder.Near:
		every := explainNear
		if c.usesAsBefore(stayShare) {
			every = explainStays
		}
		if since < every {
			return 0
		}
		return nearFirst + float64(since)/float64(every)
	case c.explained.IsZero():
		return float64(now.Sub(c.found)) / float64(explainAfter)
	case c.usesAsBefore(sameShare):
		return float64(since) / float64(explainSame)
	}
	return float64(since) / float64(explainMoved)
}

const (
	// sameShare: usage that differs by less than that part is the same, as it is for what is written.
	sameShare = 8
	// stayShare: the same near the limit, where an eighth is all that is left.
	stayShare = 64
)

// usesAsBefore reports whether usage is within a part of what it was at the last inspection.
func (c *container) usesAsBefore(share memory.Bytes) bool {
	usage := c.recorder.Usage()
	return !c.explained.IsZero() && max(usage, c.explainedAt)-min(usage, c.explainedAt) < c.explainedAt/share
}
