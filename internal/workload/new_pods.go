// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/rollout"
)

// creation is the input for the size of new pods of a program.
type creation struct {
	recommended  memory.Size  // by the evidence; zero: none
	proven       memory.Size  // the lowest size with which a pod of the program was watched; zero: none
	owner        memory.Size  // the owner's size
	running      memory.Size  // [evidence.Running]
	highestLimit memory.Bytes // [evidence.HighestLimit]
	// restored is the limit restored by a rollback of the last week, or [rollout.NoLimit]; 0: no rollback.
	restored     memory.Bytes
	ownerSizeNew bool // [evidence.ownerSizeNew]: new pods get at least the owner's size
	paused       bool // changes are paused
}

// size returns the size of new pods; zero: the owner's size. New pods get a lower limit only after one pod was watched
// with it. During a pause, they get the size of running pods, but at least a limit that a rollback restored.
func (c *creation) size() memory.Size {
	size := c.boundedSize()
	if c.restored == rollout.NoLimit {
		size.Limit = 0
	}
	return size
}

// boundedSize returns the size before a rollback to no limit is applied.
func (c *creation) boundedSize() memory.Size {
	switch {
	case c.paused && c.running.Limit > 0:
		return c.running.Max(memory.Size{Limit: c.restored})
	case c.paused:
		return c.running
	case c.recommended == (memory.Size{}): // at least the size of running pods
		if size := c.atLeast(c.owner, c.running.Max(memory.Size{Limit: c.restored})); size != c.owner {
			return size
		}
		return memory.Size{}
	}
	size := c.recommended
	if c.unproven() {
		earlier := c.atLeast(c.owner.Max(memory.Size{Limit: c.highestLimit}), c.running)
		size = c.atLeast(cmp.Or(c.proven, earlier), size)
	}
	if c.ownerSizeNew {
		size = c.atLeast(c.owner, size)
	}
	return size
}

// unproven reports whether the recommended limit is below the owner's limit or the limit of any earlier pod, and no pod
// was watched with it.
func (c *creation) unproven() bool {
	to := c.recommended.Limit
	lower := c.owner.Limit == 0 || to < max(c.owner.Limit, c.running.Limit, c.highestLimit)
	return to > 0 && lower && (c.proven.Limit == 0 || to < c.proven.Limit)
}

// atLeast returns the larger request and limit of a and b; b if a is zero. The limit remains unset if the owner set
// none and no pod was watched with one.
func (c *creation) atLeast(a, b memory.Size) memory.Size {
	least := a.Max(b)
	if c.owner.Limit == 0 && c.proven.Limit == 0 {
		least.Limit = 0
	}
	if a == (memory.Size{}) {
		return b
	}
	return least
}

func (d *decider) creationOf(name string, recommended memory.Size) creation {
	return d.st.creationOf(d.s, &d.rollout.State, name, recommended, d.now)
}

// creationOf returns the input for the size of new pods of a container's newest program.
func (st *State) creationOf(
	s *Snapshot, sizing *rollout.State, name string, recommended memory.Size, now time.Time,
) creation {
	c := creation{recommended: recommended, paused: s.paused != ""}
	if e := st.newest(name); e != nil {
		c.owner, c.running, c.highestLimit, c.ownerSizeNew = e.Owner, e.Running, e.HighestLimit, e.ownerSizeNew(now)
		c.proven = sizing.Proven(name, e.Program)
		r, _ := sizing.ActiveRevert(rollout.Key{Container: name, Program: e.Program}, now)
		if c.restored = r.Restored.Limit; c.restored == rollout.NoLimit && c.owner.Limit > 0 {
			c.restored = 0 // the owner has set a limit since the rollback
		}
	}
	return c
}

// setNewPods sets the program, the owner's size and the size of new pods in a container's recommendation.
func (d *decider) setNewPods(status *v1alpha1.ContainerRecommendation) {
	e := d.st.newest(status.Container)
	if e == nil {
		return
	}
	status.Program = e.Program
	if e.Owner != (memory.Size{}) {
		status.Owner = new(profile.APISize(e.Owner))
	}
	if !d.s.Profile.Spec.Sizing.Mode.SizesNewPods() || d.s.Facts.Conflict != "" {
		return
	}
	var recommended memory.Size
	if status.Recommended != nil {
		recommended = profile.SizeOf(*status.Recommended)
	}
	c := d.creationOf(status.Container, recommended)
	if size := c.size(); size != (memory.Size{}) {
		status.NewPods = new(profile.APISize(size))
	}
}

const maxOtherPrograms = 2 // in the API

// setOtherPrograms sets the sizes of new pods of other programs if above the owner's. The webhook uses them for the
// first pods after a rollback to an earlier release, before the leader has processed the rollback.
func (d *decider) setOtherPrograms() {
	if !d.s.Profile.Spec.Sizing.Mode.SizesNewPods() || d.s.Facts.Conflict != "" {
		return
	}
	for i := range d.out.status.Containers {
		status := &d.out.status.Containers[i]
		container := d.s.Profile.Container(status.Container, d.s.Template.Annotations)
		policy := container.SizePolicy()
		policy.SharesLimit = constraints.WholeSize(d.s.Template).Limit > 0
		for _, e := range d.st.containers[status.Container] {
			size := e.Running
			if d.s.paused == "" {
				size = size.Max(e.stableSize(d.out.sizes[rollout.Key{Container: status.Container, Program: e.Program}]))
			}
			// apply the current bounds to a stored size
			size, _ = policy.Bound(size, e.Owner)
			if size = inject.Increase(e.Owner, size); e.Program == status.Program || size == (memory.Size{}) {
				continue
			}
			other := v1alpha1.ProgramSize{Program: e.Program, NewPods: profile.APISize(size)}
			if e.Owner != (memory.Size{}) {
				other.Owner = new(profile.APISize(e.Owner))
			}
			status.OtherPrograms = append(status.OtherPrograms, other)
		}
		// a forged checkpoint may have more than programsKept
		status.OtherPrograms = head(status.OtherPrograms, maxOtherPrograms)
	}
}

// stableSize returns the current recommended size, or the last one if there is no current size or it is near, because
// evidence changes sizes slightly every hour. Zero: no recommendation.
func (e *evidence) stableSize(now memory.Size) memory.Size {
	if now == (memory.Size{}) || nearlyEqual(now, e.Size) {
		return e.Size
	}
	return now
}

const (
	// permitEvery is the period after which a new permission for a canary replaces the last one, which may be unused.
	permitEvery = time.Hour
	// permitPause is the time between two permissions, in which a pod created with the first becomes visible.
	permitPause = time.Minute
)

// onlyAtCreation are the reasons that prevent a lower limit of running pods, but not of new pods.
var onlyAtCreation = []string{v1alpha1.ReasonHeapCapFixed, v1alpha1.ReasonQoSClass, v1alpha1.ReasonWaitingForNewPods}

// permit returns a permission for one new pod to be the canary, the first pod with a lower limit; nil: none. The canary
// is the successor of a pod evicted for the lower limit or, if running pods keep their size, the next new pod. Later
// permissions have larger numbers: times in Unix seconds.
func (d *decider) permit() *v1alpha1.Canary {
	mode := d.s.Profile.Spec.Sizing.Mode
	if d.s.paused != "" || d.s.Facts.Conflict != "" || d.hasCanary() {
		return nil
	}
	if at, evicted := d.out.rollout.State.LoweringByEviction(); evicted {
		// Any replica's webhook may use the permission; otherwise the eviction could be useless.
		return &v1alpha1.Canary{Number: at.Unix()}
	}
	onlyNew := mode == v1alpha1.SizingOnCreate || resizes(mode) && (d.s.isRun(d.s.Template) ||
		len(d.rollout.Pods) > 0 && slices.Contains(onlyAtCreation, d.out.rollout.Reason))
	if !onlyNew || d.s.Replica == "" {
		return nil
	}
	for i := range d.out.status.Containers {
		if c := &d.out.status.Containers[i]; d.inNewestPod(c.Container) && d.mayLowerNew(c) {
			d.out.timing.decide(permitPause)
			if d.out.canaryWaits = d.rollout.QueryResult.Against(d.now); d.out.canaryWaits != "" {
				return nil
			}
			since := d.now.Truncate(permitEvery)
			if d.now.Sub(since) < permitPause {
				return nil
			}
			return &v1alpha1.Canary{Number: since.Unix(), Replica: d.s.Replica}
		}
	}
	return nil
}

// hasCanary reports whether a scheduled or unscheduled pod has an unproven lower limit.
func (d *decider) hasCanary() bool {
	pods := slices.Clip(d.rollout.Pods)
	for _, pod := range d.s.Governed {
		if pod.Spec.NodeName == "" {
			pods = append(pods, d.st.runningPod(d.s, pod, &d.plan, d.now))
		}
	}
	return d.out.rollout.State.HasCanary(pods)
}

// mayLowerNew reports whether a new pod may be the first with the recommended limit: there is a day of evidence or the
// limit only reverses memfit's own raise, and no rollback forbids the limit.
func (d *decider) mayLowerNew(c *v1alpha1.ContainerRecommendation) bool {
	e := d.st.newest(c.Container)
	if c.Recommended == nil || e == nil || d.rollout.Unmeasured[c.Container] != "" {
		return false
	}
	recommended, key := profile.SizeOf(*c.Recommended), rollout.Key{Container: c.Container, Program: e.Program}
	inputs, guess := d.creationOf(c.Container, recommended), d.rollout.Desired[key].Recommendation.Guess
	switch {
	case !inputs.unproven(), inputs.ownerSizeNew && recommended.Limit < inputs.owner.Limit:
		return false
	case period.Of(e.history.Span()) < ownersDay &&
		!d.rollout.State.ReversesGuess(key, guess, inputs.owner.Limit, recommended.Limit):
		return false
	}
	reverted, active := d.rollout.State.ActiveRevert(key, d.now)
	return !active || recommended.Limit >= reverted.Restored.Limit
}
