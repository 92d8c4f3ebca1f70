// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

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
	// nearPercent of its limit is where a pod that grows is in danger: below, there is time for its owner.
	nearPercent = 75
	// soonest is how little real time may be left at the fastest rate that fits before a pod further down is in danger,
	// too.
	soonest = 15 * time.Minute
	// soonPercent of the limit must be used for the rate alone to say so.
	soonPercent = 50
)

// danger is a container that grows towards its limit.
type danger struct {
	pod       *rollout.Pod
	container *rollout.Container
	outlier   bool
	why       string
}

// Endangered proposes at most one pod to restart for its memory: of those in danger, one that stands out among its
// replicas, else the fullest; nil: none is in danger. shapes are what memory does, by container name. Whether the pod
// is restarted now, package rollout decides.
func Endangered(pods []rollout.Pod, shapes map[string]shape.Shape) *rollout.Candidate {
	d, found := worst(pods, shapes)
	if !found {
		return nil
	}
	return &rollout.Candidate{
		Pod: d.pod.Name, UID: d.pod.UID, Why: d.why, Measured: d.container.Measured,
		WorkingSetOnly: d.container.WorkingSetOnly,
	}
}

// worst is the pod that is killed next if nothing happens.
func worst(pods []rollout.Pod, shapes map[string]shape.Shape) (danger, bool) {
	var all []danger
	for i := range pods {
		if pods[i].Leaving {
			continue
		}
		for j := range pods[i].Containers {
			c := &pods[i].Containers[j]
			if d, ok := endangered(&pods[i], c, shapes[c.Name]); ok {
				all = append(all, d)
			}
		}
	}
	if len(all) == 0 {
		return danger{}, false
	}
	return slices.MinFunc(all, func(a, b danger) int {
		return cmp.Or(
			boolean(b.outlier)-boolean(a.outlier), cmp.Compare(b.share(), a.share()), cmp.Compare(a.pod.Name, b.pod.Name),
		)
	}), true
}

func endangered(pod *rollout.Pod, c *rollout.Container, s shape.Shape) (danger, bool) {
	d := danger{pod: pod, container: c, outlier: slices.Contains(s.Outliers, pod.Name)}
	limit := d.limit()
	if limit == 0 || c.Measured.IsZero() || !d.outlier &&
		(s.Confidence == memory.Low || s.Kind != shape.Climb && s.Kind != shape.StepRetention) {
		return danger{}, false
	}
	soon := s.Kind == shape.Climb && s.TimeToLimit[1] > 0 && s.TimeToLimit[0] <= soonest
	if share := d.share(); share < nearPercent && (!soon || share < soonPercent) {
		return danger{}, false
	}
	switch {
	case d.outlier:
		d.why = fmt.Sprintf(
			"container %s uses %s, %d %% of its limit of %s, far above its replicas", c.Name, c.Demand, d.share(), limit,
		)
	case s.Kind == shape.Climb:
		d.why = fmt.Sprintf("container %s climbs and uses %s, %d %% of its limit of %s", c.Name, c.Demand, d.share(), limit)
		if s.TimeToLimit[1] > 0 {
			d.why += fmt.Sprintf(", which it reaches in %s or later", format.InWords(s.TimeToLimit[0]))
		}
	default:
		d.why = fmt.Sprintf(
			"container %s keeps what it took and uses %s, %d %% of its limit of %s", c.Name, c.Demand, d.share(), limit,
		)
	}
	return d, true
}

// limit is the effective one; 0: none, and then nothing kills it.
func (d danger) limit() memory.Bytes { return cmp.Or(d.container.Effective, d.container.Actual.Limit) }

// share of the limit that is used, in percent.
func (d danger) share() int64 { return int64(d.container.Demand) * 100 / int64(d.limit()) }

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
