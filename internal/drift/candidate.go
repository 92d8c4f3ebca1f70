// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package drift proposes the pod of a workload that should be restarted because it leaks or retains memory, before the
// pod is OOM-killed. Package rollout decides whether to restart it now. If in doubt, drift proposes no pod. It reads no
// clock and performs no I/O: equal input gives equal output.
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
	// nearPercent is the use, in percent of the limit, from which a growing container is in danger.
	nearPercent = 75
	// A climbing container is in danger from soonPercent on if it may reach its limit within soon.
	soonPercent = 50
	soon        = 15 * time.Minute
	// samePercent is the highest use that counts as equal to the use before a restart, in percent of that use: the
	// replicas of a program differ by as much.
	samePercent = 110
)

// danger is a container that grows towards its limit.
type danger struct {
	pod       *rollout.Pod
	container *rollout.Container
	outlier   bool
	why       string
}

// Endangered returns the pod to restart: an outlier among the replicas, otherwise the pod that is nearest to its limit;
// nil: no pod is in danger. shapes holds the shape of memory use by container name, past the restarts of the last week.
func Endangered(pods []rollout.Pod, shapes map[string]shape.Shape, past []rollout.PastRestart) *rollout.Candidate {
	var all []danger
	for i := range pods {
		if pods[i].Terminating {
			continue
		}
		for j := range pods[i].Containers {
			c := &pods[i].Containers[j]
			if d, ok := endangered(&pods[i], c, shapes[c.Name]); ok && !d.needsMemory(shapes[c.Name].Kind, past) {
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
		return cmp.Or(cmp.Compare(b.usePercent(), a.usePercent()), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	return &rollout.Candidate{
		Pod: d.pod.Name, UID: d.pod.UID, Why: d.why, Measured: d.container.Measured,
		WorkingSetOnly: d.container.WorkingSetOnly,
		Cause:          rollout.RestartDemand{Container: d.container.Name, Demand: d.container.Demand},
	}
}

// endangered reports whether a container grows towards its limit. An outlier that does not grow is not in danger,
// because the limit is sized for the outlier.
func endangered(pod *rollout.Pod, c *rollout.Container, s shape.Shape) (danger, bool) {
	d := danger{pod: pod, container: c, outlier: slices.Contains(s.Outliers, pod.Name)}
	limit := d.limit()
	if limit == 0 || c.Measured.IsZero() || s.Confidence == memory.Low ||
		s.Kind != shape.Climb && s.Kind != shape.StepRetention ||
		len(s.Pods) > 0 && !slices.Contains(s.Pods, pod.Name) {
		return danger{}, false
	}
	reachesSoon := s.Kind == shape.Climb && s.TimeToLimit[1] > 0 && s.TimeToLimit[0] <= soon
	if percent := d.usePercent(); percent < nearPercent && (!reachesSoon || percent < soonPercent) {
		return danger{}, false
	}
	verb := "climbs"
	if s.Kind == shape.StepRetention {
		verb = "retains memory"
	}
	d.why = fmt.Sprintf("container %s %s and uses %s, %d %% of its limit of %s",
		c.Name, verb, c.Demand, d.usePercent(), limit)
	if s.TimeToLimit[1] > 0 {
		d.why += fmt.Sprintf(", which it reaches in %s or later", format.InWords(s.TimeToLimit[0]))
	}
	if d.outlier {
		d.why += "; it is far above its replicas"
	}
	return d, true
}

// needsMemory reports whether a restart of the last week shows that the container needs its retained memory: a pod
// created after the restart uses as much again. A climbing container does so in any case, which shows nothing.
func (d danger) needsMemory(kind shape.Kind, past []rollout.PastRestart) bool {
	return kind == shape.StepRetention && slices.ContainsFunc(past, func(r rollout.PastRestart) bool {
		return r.Cause.Container == d.container.Name && !d.pod.Created.Before(r.At) &&
			d.container.Demand <= r.Cause.Demand.Percent(samePercent)
	})
}

// limit returns the effective limit; 0: no limit.
func (d danger) limit() memory.Bytes { return cmp.Or(d.container.Effective, d.container.Actual.Limit) }

func (d danger) usePercent() int64 { return int64(d.container.Demand) * 100 / int64(d.limit()) }
