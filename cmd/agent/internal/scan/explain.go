// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"time"

	"github.com/memfit/memfit/internal/flightrecorder"
)

const (
	// explainQuiet is how often a container is looked into where nothing happens, and explainNear while it is near its
	// limit: what fills it then is what fills it when it is killed. The Explainer rests between looks, whoever asks.
	explainQuiet = 10 * time.Minute
	explainNear  = 5 * time.Second
	// explainAfter is how old a container gets before the first look: most of what starts is not what it will be.
	explainAfter = 10 * time.Second
)

// explain starts looking into the container that is most due, and takes what was found.
func (l *Loop) explain(now time.Time) {
	if l.Explain == nil {
		return
	}
	for {
		select {
		case f := <-l.Explain.Found():
			if c := l.containers[f.Container]; c != nil {
				c.finding = &f
			}
			l.Metrics.explained.WithLabelValues(map[bool]string{true: "ok", false: "failed"}[f.Err == nil]).Inc()
			continue
		default:
		}
		break
	}
	c := l.mostDue(now)
	if c == nil {
		return
	}
	if pids, err := l.Tree.Processes(c.Dir); err == nil && l.Explain.Start(c.ContainerID, pids) {
		c.explained = now
	}
}

// mostDue is the container that has waited longest in units of its own interval; nil: none is due.
func (l *Loop) mostDue(now time.Time) (most *container) {
	worst := 1.0
	for _, c := range l.containers {
		o := l.objects[c.pod]
		if o == nil || o.pod.Declined || !c.gone.IsZero() {
			continue
		}
		every := explainQuiet
		switch {
		case c.explained.IsZero():
			every = explainAfter
		case c.recorder.Urgency(now) == flightrecorder.Near:
			every = explainNear
		}
		since := now.Sub(c.explained)
		if c.explained.IsZero() {
			since = now.Sub(c.found)
		}
		if waited := float64(since) / float64(every); waited >= worst {
			most, worst = c, waited
		}
	}
	return most
}
