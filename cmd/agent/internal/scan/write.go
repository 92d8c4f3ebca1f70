// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/agent/internal/pods"
	"github.com/memfit/memfit/cmd/agent/internal/snapshot"
	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/flightrecorder"
	"github.com/memfit/memfit/internal/quote"
)

// recordKill counts and logs the last kill in a container's recorder, and triggers a write.
func (l *Loop) recordKill(c *container) {
	c.trigger = true
	k := c.recorder.LastKill()
	l.Metrics.kills.WithLabelValues(string(k.Kind)).Inc()
	l.Log.Info("OOM kill", "container", c.ContainerID, "pod", c.PodUID, "kind", k.Kind, "evidence", k.Detection)
}

const (
	// checkEvery is how often the numbers of a pod are compared with those last written.
	checkEvery = 10 * time.Second
	// maxInspected is how long the first write of a pod waits for inspections. A new agent takes some minutes for a node
	// of 110 pods, and an earlier write would replace the last snapshot by one without inspections.
	maxInspected = 5 * time.Minute
)

// write submits the snapshots that are due.
func (l *Loop) write(now time.Time) {
	l.readResults(now)
	l.settle()
	for _, o := range l.objects {
		if !o.writes.Due(now, o.trigger, flightrecorder.Jumped) ||
			!o.trigger && (now.Before(o.check) || o.written == nil && now.Sub(o.found) < maxInspected && l.uninspected(o)) {
			continue
		}
		o.check = now.Add(checkEvery)
		status := l.status(o, now)
		if len(status.Containers) == 0 || !o.writes.Due(now, o.trigger, snapshot.Changed(o.written, status)) {
			continue
		}
		status.PodUsage = l.podUsage(o)
		if l.Writer.Submit(o.target, status.DeepCopy()) {
			o.writes.Wrote(now, o.trigger)
			o.written, o.trigger = status, false
		}
	}
}

// readResults handles the results of earlier writes. A failed write is retried within the same budget.
func (l *Loop) readResults(now time.Time) {
	for {
		select {
		case r := <-l.Writer.Results():
			if r.Took > 0 {
				l.alarms.horizon.RecordWrite(r.Took, now)
			}
			if r.Alarm != nil {
				l.alarmWritten(r)
				continue
			}
			outcome := "ok"
			switch {
			case errors.Is(r.Err, snapshot.ErrDeleted):
				outcome = "deleted"
			case r.Err != nil:
				outcome = "failed"
				l.Log.Error("Could not write a snapshot", "error", r.Err)
				if o := l.objects[r.Pod]; o != nil {
					o.written, o.trigger = nil, true
				}
			}
			l.Metrics.writes.WithLabelValues(outcome).Inc()
		default:
			return
		}
	}
}

// settle copies kills and stalls from recorders to the histories of their pods, as soon as the pods are known.
func (l *Loop) settle() {
	for _, c := range l.containers {
		o := l.objects[c.pod]
		if !c.trigger || o == nil {
			continue
		}
		h := o.history[c.name]
		if k := c.recorder.LastKill(); k != nil && k != h.kill {
			h.kills, h.kill = h.kills+1, k
			if c.finding != nil {
				h.parts = c.finding.Memory
			}
		}
		if s := c.recorder.LastStall(); s != nil {
			if h.stall == nil || !h.stall.Started.Equal(s.Started) { // a new stall, not the end of the last
				h.filled = nil
				if c.finding != nil {
					h.filled = c.finding.Memory
				}
			}
			h.stall = s
		}
		o.history[c.name] = h
		o.trigger, c.trigger = true, false
	}
}

// running returns the running instance of a pod's container; nil: none.
func (l *Loop) running(reported *pods.Container) *container {
	if c := l.containers[reported.ID]; c != nil && c.pod != "" && c.gone.IsZero() {
		return c
	}
	return nil
}

// uninspected reports whether a running container of a pod still waits for its first inspection.
func (l *Loop) uninspected(o *object) bool {
	if l.Inspector == nil || o.pod.Declined {
		return false
	}
	for i := range o.pod.Containers {
		if c := l.running(&o.pod.Containers[i]); c != nil && c.finding == nil {
			return true
		}
	}
	return false
}

// status returns the current snapshot of a pod.
func (l *Loop) status(o *object, now time.Time) *v1alpha1.MemorySnapshotStatus {
	s := &v1alpha1.MemorySnapshotStatus{
		NodeName: l.Node, Tier: v1alpha1.AgentWatch, CgroupVersion: l.Tree.Version().String(),
		ObservedTime: metav1.NewTime(now.Truncate(time.Second)), Alarm: o.alarm,
	}
	if l.Inspector != nil {
		s.Tier = v1alpha1.AgentSee
	}
	for i := range o.pod.Containers {
		name := o.pod.Containers[i].Name
		h, known := o.history[name]
		c := l.running(&o.pod.Containers[i])
		if c == nil && !known {
			continue
		}
		s.Containers = append(s.Containers, l.container(o, name, c, h))
		if c != nil && s.PodLimit == nil {
			s.PodLimit = podLimit(c)
		}
	}
	return s
}

// container returns the snapshot of a container: data of its running instance c, if any, and of earlier instances.
func (l *Loop) container(o *object, name string, c *container, h history) v1alpha1.ContainerSnapshot {
	recorder := flightrecorder.New(true)
	if c != nil {
		recorder = c.recorder
	}
	out := snapshot.Container(name, recorder)
	out.OOMKills = int32(min(h.kills, 1<<30)) //nolint:gosec // bounded
	if h.kill != nil {
		out.LastKill = snapshot.Kill(h.kill)
		out.LastKill.Memory = h.parts
	}
	if h.stall != nil {
		out.LastStall = snapshot.Stall(h.stall)
		out.LastStall.Memory = h.filled
	}
	l.setInspection(&out, o, c)
	return out
}

// setInspection sets the result of the last inspection, or why there is none.
func (l *Loop) setInspection(out *v1alpha1.ContainerSnapshot, o *object, c *container) {
	switch {
	case l.Inspector == nil:
		out.Inspection = v1alpha1.InspectionNotEnabled
	case o.pod.Declined:
		out.Inspection = v1alpha1.InspectionDeclined
	case c == nil:
		out.Inspection, out.InspectionMessage = v1alpha1.InspectionUnreadable, "not running"
	case c.finding == nil:
		out.Inspection, out.InspectionMessage = v1alpha1.InspectionUnreadable, "not inspected yet"
	case c.finding.Err != nil:
		out.Inspection, out.InspectionMessage = v1alpha1.InspectionUnreadable, quote.Cut(c.finding.Err.Error(), 512)
	default:
		out.Inspection, out.Memory, out.Runtime = v1alpha1.InspectionDone, c.finding.Memory, c.finding.Runtime
		out.InspectionMessage = quote.Cut(c.finding.Unread, 512)
		if o.pod.Request.Map {
			out.Map = c.finding.Map
		}
	}
}

// podLimit returns the effective limit of the pod's cgroup at the last full reading; nil: none.
func podLimit(c *container) *resource.Quantity {
	_, limit, at := c.recorder.Last()
	if at.IsZero() || limit == cgroup.Unlimited {
		return nil
	}
	return new(limit.Quantity())
}

// podUsage reads the usage of a pod's cgroup.
func (l *Loop) podUsage(o *object) *resource.Quantity {
	for i := range o.pod.Containers {
		c := l.running(&o.pod.Containers[i])
		if c == nil {
			continue
		}
		if n, err := l.Tree.Usage(c.PodDir); err == nil {
			return new(n.Quantity())
		}
	}
	return nil
}
