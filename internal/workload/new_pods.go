// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/rollout"
)

// creation is what decides which size new pods of a program get.
type creation struct {
	// recommended follows from the evidence; zero: nothing.
	recommended memory.Size
	// owner is what the owner asks for, held the largest size of the running pods, or of the last that ran, and most the
	// highest limit that a pod had.
	owner, held memory.Size
	most        memory.Bytes
	// proven is the lowest size that a pod of the program was watched with; zero: none.
	proven memory.Size
	// restored is the limit that a rollback of the last week gave back, or [rollout.NoLimit]; 0: there was none.
	restored memory.Bytes
	// fresh: the owner's numbers are so new that no evidence undercuts them.
	fresh bool
	// paused: nothing changes.
	paused bool
}

// size returns what new pods get; zero: what their owner asks for. A lower limit reaches new pods only after one pod
// was watched with it, and a pause keeps the size that the running pods have, but for one that did harm.
func (c *creation) size() memory.Size {
	size := c.sized()
	if c.restored == rollout.NoLimit {
		size.Limit = 0
	}
	return size
}

func (c *creation) sized() memory.Size {
	switch {
	case c.paused && c.held.Limit > 0:
		return c.held.Max(memory.Size{Limit: c.restored})
	case c.paused:
		return c.held
	case c.recommended == (memory.Size{}):
		return memory.Size{}
	}
	size := c.recommended
	if c.unproven() {
		given := c.least(c.owner.Max(memory.Size{Limit: c.most}), c.held)
		size = c.least(cmp.Or(c.proven, given), size)
	}
	if c.fresh {
		size = c.least(c.owner, size)
	}
	return size
}

// unproven reports whether the recommended limit is lower than what pods have or had, or their owner asks for, and no
// pod was watched with it.
func (c *creation) unproven() bool {
	to := c.recommended.Limit
	lower := c.owner.Limit == 0 || to < max(c.owner.Limit, c.held.Limit, c.most)
	return to > 0 && lower && (c.proven.Limit == 0 || to < c.proven.Limit)
}

// least returns a size that is at least both. Without a limit a container may have all memory, so that stays.
func (c *creation) least(a, b memory.Size) memory.Size {
	least := a.Max(b)
	if c.owner.Limit == 0 && c.proven.Limit == 0 {
		least.Limit = 0
	}
	if a == (memory.Size{}) {
		return b
	}
	return least
}

// creationOf gathers what decides about new pods of the container's newest program.
func (d *decider) creationOf(name string, recommended memory.Size) creation {
	c := creation{recommended: recommended, paused: d.s.paused != ""}
	if e := d.st.newest(name); e != nil {
		c.owner, c.held, c.most, c.fresh = e.Owner, e.Held, e.Most, e.fresh(d.now)
		c.proven = d.rollout.State.Proven(name, e.Program)
		r, _ := d.rollout.State.ActiveRevert(rollout.Key{Container: name, Program: e.Program}, d.now)
		if c.restored = r.Restored.Limit; c.restored == rollout.NoLimit && c.owner.Limit > 0 {
			c.restored = 0 // its owner has set a limit since
		}
	}
	return c
}

// offer fills in whose evidence a recommendation rests on, and what new pods get.
func (d *decider) offer(status *v1alpha1.ContainerRecommendation) {
	e := d.st.newest(status.Container)
	if e == nil {
		return
	}
	status.Program = e.Program
	if e.Owner != (memory.Size{}) {
		owner := profile.APISize(e.Owner)
		status.Owner = &owner
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
		next := profile.APISize(size)
		status.NewPods = &next
	}
}

// maxOtherPrograms is as many as the API server accepts.
const maxOtherPrograms = 2

// offerOthers fills in what new pods get of other programs that run or are remembered, where that is more than their
// owner asks for: the leader may be seconds late for the first pods of an earlier release.
func (d *decider) offerOthers() {
	if !d.s.Profile.Spec.Sizing.Mode.SizesNewPods() || d.s.Facts.Conflict != "" {
		return
	}
	for i := range d.v.status.Containers {
		status := &d.v.status.Containers[i]
		container := d.s.Profile.Container(status.Container, d.s.Template.Annotations)
		for _, e := range d.st.containers[status.Container] {
			size := e.Held
			if d.s.paused == "" {
				size = size.Max(e.sized(d.v.sizes[rollout.Key{Container: status.Container, Program: e.Program}]))
			}
			// what is remembered was found with the bounds of that time
			size, _ = container.SizePolicy().Bound(size, e.Owner)
			if size = inject.Increase(e.Owner, size); e.Program == status.Program || size == (memory.Size{}) {
				continue
			}
			other := v1alpha1.ProgramSize{Program: e.Program, NewPods: profile.APISize(size)}
			if e.Owner != (memory.Size{}) {
				other.Owner = new(profile.APISize(e.Owner))
			}
			status.OtherPrograms = append(status.OtherPrograms, other)
		}
		// three programs are kept, but a checkpoint that another client wrote may have more
		status.OtherPrograms = head(status.OtherPrograms, maxOtherPrograms)
	}
}

// sized returns the size last recommended for a program, which is that of now unless they are near: evidence moves a
// number a little every hour. Zero is none.
func (e *evidence) sized(now memory.Size) memory.Size {
	if now == (memory.Size{}) || near(now, e.Size) {
		return e.Size
	}
	return now
}

// A permission for a canary is renewed so often, because the pod that it was given to may not have been created. In
// between none is given for so long that a pod which got the last one is seen. The number of each is a time in Unix
// seconds, so that a later one is larger.
const (
	permitEvery = time.Hour
	permitPause = time.Minute
)

// onlyAtCreation are the reasons for which running pods do not get a lower limit, and new ones may.
var onlyAtCreation = []string{v1alpha1.ReasonHeapCapFixed, v1alpha1.ReasonQoSClass, v1alpha1.ReasonWaitingForNewPods}

// permit lets one new pod be the first with a lower limit: the successor of a pod that was evicted for it, or, where
// running pods keep their size, as a Job's runs do, the next pod that is created.
func (d *decider) permit() *v1alpha1.Canary {
	mode := d.s.Profile.Spec.Sizing.Mode
	if d.s.paused != "" || d.s.Facts.Conflict != "" || d.hasCanary() {
		return nil
	}
	if at, evicted := d.v.rollout.State.LoweringByEviction(); evicted {
		// Whichever webhook is asked may use it: with one that is not asked the pod would be evicted for nothing.
		return &v1alpha1.Canary{Number: at.Unix()}
	}
	onlyNew := mode == v1alpha1.SizingOnCreate || resizes(mode) && (d.s.isRun(d.s.Template) ||
		len(d.rollout.Pods) > 0 && slices.Contains(onlyAtCreation, d.v.rollout.Reason))
	if !onlyNew || d.s.Replica == "" {
		return nil
	}
	for i := range d.v.status.Containers {
		if c := &d.v.status.Containers[i]; d.newestHas(c.Container) && d.mayLowerNew(c) {
			d.v.timing.recommend(permitPause)
			if d.v.canaryWaits = d.rollout.QueryResult.Against(d.now); d.v.canaryWaits != "" {
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

// hasCanary reports whether a pod has a lower limit that no pod has proven, whether it runs yet or not.
func (d *decider) hasCanary() bool {
	pods := slices.Clip(d.rollout.Pods)
	for _, pod := range d.s.Governed {
		if pod.Spec.NodeName == "" {
			pods = append(pods, d.st.runningPod(d.s, pod, &d.plan, d.now))
		}
	}
	return d.v.rollout.State.HasCanary(pods)
}

// mayLowerNew reports whether a new pod may be the first with the recommended limit: a day of evidence speaks for it,
// or it takes back a raise of memfit's own, and nothing was rolled back.
func (d *decider) mayLowerNew(c *v1alpha1.ContainerRecommendation) bool {
	e := d.st.newest(c.Container)
	if c.Recommended == nil || e == nil {
		return false
	}
	recommended, key := profile.SizeOf(*c.Recommended), rollout.Key{Container: c.Container, Program: e.Program}
	of, guess := d.creationOf(c.Container, recommended), d.rollout.Desired[key].Recommendation.Guess
	switch {
	case !of.unproven(), of.fresh && recommended.Limit < of.owner.Limit:
		return false
	case period.Of(e.history.Span()) < ownersDay &&
		!d.rollout.State.TakesBack(key, guess, of.owner.Limit, recommended.Limit):
		return false
	}
	reverted, active := d.rollout.State.ActiveRevert(key, d.now)
	return !active || recommended.Limit >= reverted.Restored.Limit
}
