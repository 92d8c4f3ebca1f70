// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package drift finds the pod that retains or leaks memory and should be replaced before the kernel kills it. Package
// rollout decides whether to restart it now. It reads no clock and performs no I/O: equal input gives equal output. If
// in doubt it proposes no pod.
package drift

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/shape"
)

const (
	// nearPercent is the use, in percent of the limit, from which a growing pod is in danger: below, its owner has time.
	nearPercent = 75
	// soonest: a pod below nearPercent is also in danger if less time is left at the highest plausible rate.
	soonest = 15 * time.Minute
	// soonPercent is the least use, in percent of the limit, for that rule.
	soonPercent = 50
	// againPercent of the use before a restart still counts as equal: replicas of a program vary as much.
	againPercent = 110
)

// danger is a container that grows towards its limit.
type danger struct {
	pod       *rollout.Pod
	container *rollout.Container
	outlier   bool
	why       string
}

// Endangered proposes at most one endangered pod to restart for its memory: an outlier among its replicas,
// otherwise the fullest; nil: none. shapes are the shapes of memory by container name, and past the restarts of the
// last week. Package rollout decides whether to restart the pod now.
func Endangered(pods []rollout.Pod, shapes map[string]shape.Shape, past []rollout.PastRestart) *rollout.Candidate {
	var all []danger
	for i := range pods {
		if pods[i].Terminating {
			continue
		}
		for j := range pods[i].Containers {
			c := &pods[i].Containers[j]
			if d, ok := endangered(&pods[i], c, shapes[c.Name]); ok && !d.needs(shapes[c.Name].Kind, past) {
				all = append(all, d)
			}
		}
	}
	if slices.ContainsFunc(all, func(d danger) bool { return d.outlier }) {
		all = slices.DeleteFunc(all, func(d danger) bool { return !d.outlier })
	}
	if len(all) == 0 {
		return nil
	}
	d := slices.MinFunc(all, func(a, b danger) int {
		return cmp.Or(cmp.Compare(b.share(), a.share()), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	return &rollout.Candidate{
		Pod: d.pod.Name, UID: d.pod.UID, Why: d.why, Measured: d.container.Measured,
		WorkingSetOnly: d.container.WorkingSetOnly,
		Held:           rollout.Held{Container: d.container.Name, Demand: d.container.Demand},
	}
}

// endangered reports whether a container grows towards its limit. An outlier that does not grow is in no danger,
// because its limit is sized for it.
func endangered(pod *rollout.Pod, c *rollout.Container, s shape.Shape) (danger, bool) {
	d := danger{pod: pod, container: c, outlier: slices.Contains(s.Outliers, pod.Name)}
	limit := d.limit()
	if limit == 0 || c.Measured.IsZero() || s.Confidence == memory.Low ||
		s.Kind != shape.Climb && s.Kind != shape.StepRetention ||
		len(s.Pods) > 0 && !slices.Contains(s.Pods, pod.Name) {
		return danger{}, false
	}
	soon := s.Kind == shape.Climb && s.TimeToLimit[1] > 0 && s.TimeToLimit[0] <= soonest
	if share := d.share(); share < nearPercent && (!soon || share < soonPercent) {
		return danger{}, false
	}
	does := "climbs"
	if s.Kind == shape.StepRetention {
		does = "retains memory"
	}
	d.why = fmt.Sprintf("container %s %s and uses %s, %d %% of its limit of %s", c.Name, does, c.Demand, d.share(), limit)
	if s.TimeToLimit[1] > 0 {
		d.why += fmt.Sprintf(", which it reaches in %s or later", format.InWords(s.TimeToLimit[0]))
	}
	if d.outlier {
		d.why += "; it is far above its replicas"
	}
	return d, true
}

// needs reports whether a restart of the last week shows that the container needs its retained memory: a pod created
// after it uses as much. A climbing container always will.
func (d danger) needs(kind shape.Kind, past []rollout.PastRestart) bool {
	return kind == shape.StepRetention && slices.ContainsFunc(past, func(r rollout.PastRestart) bool {
		return r.Held.Container == d.container.Name && !d.pod.Created.Before(r.At) &&
			d.container.Demand <= r.Held.Demand.Percent(againPercent)
	})
}

// limit returns the effective limit; 0: none, so that no kill is possible.
func (d danger) limit() memory.Bytes { return cmp.Or(d.container.Effective, d.container.Actual.Limit) }

func (d danger) share() int64 { return int64(d.container.Demand) * 100 / int64(d.limit()) }
