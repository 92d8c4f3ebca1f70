// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
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
	// freshest is how old a reading may be: a pod is not evicted for what it used some time ago.
	freshest = 2 * time.Minute
	// recheckAfter is when to choose again while something holds the restart up.
	recheckAfter = 30 * time.Second
)

// Pod is one running pod of a workload.
type Pod struct {
	Name string
	UID  types.UID
	// Ready is the pod's condition; Leaving: somebody deletes or evicts it already.
	Ready, Leaving bool
	// Containers are what its containers use, those that are measured.
	Containers []Container
}

// Container is one reading.
type Container struct {
	Name string
	// Use is its demand now, Limit the effective limit (0: none, and then nothing kills it).
	Use, Limit memory.Bytes
	// At is when it was measured.
	At time.Time
	// WorkingSetOnly: Use contains page cache, which kills nobody.
	WorkingSetOnly bool
}

// Policy is the owner's word.
type Policy struct {
	// MaxPerDay is the most restarts in 24 hours, MinReplicas the ready pods that must remain, Cooldown the least time
	// between two.
	MaxPerDay, MinReplicas int
	Cooldown               time.Duration
}

// Input is everything the choice depends on.
type Input struct {
	Pods []Pod
	// Shapes are what memory does, by container name.
	Shapes map[string]shape.Shape
	Policy Policy
	// Done are the restarts of the last day, oldest first.
	Done []Restart
	// Refused is why nothing may be restarted whatever memory does (paused, a Job, ...); empty: it may.
	Refused string
	Now     time.Time
}

// Candidate is the pod to restart for its memory, or what speaks against restarting the one that is in danger.
type Candidate struct {
	// Pod is to be evicted; empty: none.
	Pod string
	UID types.UID
	// Why says what is wrong with the pod, with numbers; empty: no pod is in danger.
	Why string
	// Held says why it is not evicted although it is in danger; empty otherwise.
	Held string
	// RequeueAfter is when the answer may differ without news; 0: only with news.
	RequeueAfter time.Duration
}

// danger is a pod that grows towards its limit.
type danger struct {
	Pod
	Container
	outlier bool
	why     string
}

// guards are tried in this order; the first that refuses is the one its owner reads. Whether it is allowed at all comes
// first, then whether it is known well enough, then whether it is time, then whether the others can bear it.
var guards = []func(Input, danger) string{allowed, measuredRSS, measuredNow, fewToday, cooledDown, othersWell,
	enoughLeft}

// Choose names at most one pod: of those in danger, one that stands out among its replicas, else the fullest.
func Choose(in Input) Candidate {
	d, found := worst(in)
	if !found {
		return Candidate{}
	}
	for _, guard := range guards {
		if refusal := guard(in, d); refusal != "" {
			return Candidate{Why: d.why, Held: refusal, RequeueAfter: recheckAfter}
		}
	}
	return Candidate{Pod: d.Pod.Name, UID: d.UID, Why: d.why}
}

// worst is the pod that is killed next if nothing happens.
func worst(in Input) (danger, bool) {
	var all []danger
	for _, pod := range in.Pods {
		if pod.Leaving {
			continue
		}
		for _, c := range pod.Containers {
			if d, ok := endangered(pod, c, in.Shapes[c.Name]); ok {
				all = append(all, d)
			}
		}
	}
	if len(all) == 0 {
		return danger{}, false
	}
	return slices.MinFunc(all, func(a, b danger) int {
		return cmp.Or(
			boolean(b.outlier)-boolean(a.outlier), cmp.Compare(b.share(), a.share()), cmp.Compare(a.Pod.Name, b.Pod.Name),
		)
	}), true
}

func endangered(pod Pod, c Container, s shape.Shape) (danger, bool) {
	d := danger{Pod: pod, Container: c, outlier: slices.Contains(s.Outliers, pod.Name)}
	if c.Limit == 0 || !d.outlier &&
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
			"container %s uses %s, %d %% of its limit of %s, far above its replicas", c.Name, c.Use, d.share(), c.Limit,
		)
	case s.Kind == shape.Climb:
		d.why = fmt.Sprintf("container %s climbs and uses %s, %d %% of its limit of %s", c.Name, c.Use, d.share(), c.Limit)
		if s.TimeToLimit[1] > 0 {
			d.why += fmt.Sprintf(", which it reaches in %s or later", format.InWords(s.TimeToLimit[0]))
		}
	default:
		d.why = fmt.Sprintf(
			"container %s keeps what it took and uses %s, %d %% of its limit of %s", c.Name, c.Use, d.share(), c.Limit,
		)
	}
	return d, true
}

// share of the limit that is used, in percent.
func (d danger) share() int64 { return int64(d.Use) * 100 / int64(d.Limit) }

func allowed(in Input, _ danger) string { return in.Refused }

func measuredRSS(_ Input, d danger) string {
	if d.WorkingSetOnly {
		return "only its working set is known, and page cache in it is no danger"
	}
	return ""
}

func measuredNow(in Input, d danger) string {
	if age := in.Now.Sub(d.At); age > freshest {
		return "it was last measured at " + format.Time(d.At)
	}
	return ""
}

func fewToday(in Input, _ danger) string {
	today := 0
	for _, r := range in.Done {
		if period.Of(in.Now.Sub(r.At)) < day {
			today++
		}
	}
	if today < in.Policy.MaxPerDay {
		return ""
	}
	return fmt.Sprintf("%d pods were restarted in the last %s, and drift.maxPerDay is %d", today,
		format.Duration(day.Duration()), in.Policy.MaxPerDay)
}

func cooledDown(in Input, _ danger) string {
	if len(in.Done) == 0 {
		return ""
	}
	last := in.Done[len(in.Done)-1]
	if next := last.At.Add(in.Policy.Cooldown); in.Now.Before(next) {
		return fmt.Sprintf("pod %s was restarted at %s; the next one waits until %s (sizing.disruption.cooldown is %s)",
			last.Pod, format.Time(last.At), format.Time(next), format.Duration(in.Policy.Cooldown))
	}
	return ""
}

// othersWell: a rollout, another eviction or a crash is going on, and one thing at a time is enough.
func othersWell(in Input, d danger) string {
	for _, pod := range in.Pods {
		switch {
		case pod.UID == d.UID:
		case pod.Leaving:
			return "pod " + pod.Name + " is being deleted: one at a time"
		case !pod.Ready:
			return "pod " + pod.Name + " is not ready: one at a time"
		}
	}
	return ""
}

func enoughLeft(in Input, d danger) string {
	left := 0
	for _, pod := range in.Pods {
		if pod.Ready && !pod.Leaving && pod.UID != d.UID {
			left++
		}
	}
	if left >= in.Policy.MinReplicas {
		return ""
	}
	return fmt.Sprintf("%d ready pods would remain, and drift.minReplicas is %d", left, in.Policy.MinReplicas)
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Worst is the pod in danger.
func Worst(in Input) (pod string, uid types.UID, why string, at time.Time, workingSetOnly, found bool) {
	d, found := worst(in)
	return d.Pod.Name, d.UID, d.why, d.At, d.WorkingSetOnly, found
}
