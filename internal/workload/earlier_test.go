// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rescue"
	"github.com/memfit/memfit/internal/rollout"
)

// recreated deletes the workload and creates it again. Its pods are left, as with --cascade=orphan, or created again
// before memfit has published anything.
func (d *day) recreated(orphans bool) {
	d.t.Helper()
	d.note("deleted and created again")
	d.save()
	d.earlier = NewState()
	if _, err := d.earlier.Unpack(&v1alpha1.MemoryCheckpoint{Status: d.stored}); err != nil {
		d.t.Fatal(err)
	}
	d.earlier = d.earlier.RetainedState()
	d.state, d.shown = NewState(), v1alpha1.MemoryRecommendationStatus{}
	if !orphans {
		d.pods = nil
		d.scale()
	}
	d.step()
}

// raisedDay is a Deployment whose pods live by the limit that memfit gave them after a kill.
func raisedDay(t *testing.T, mode v1alpha1.SizingMode) *day {
	t.Helper()
	d := newDay(t, mode, sizeMi(16, 32), 48*memory.MiB, 3)
	d.run(10*time.Minute, 10*time.Second)
	if mode == v1alpha1.SizingOnCreate {
		d.deploy("rollout restart")
	}
	if least := slices.Min(d.limits()); least <= 48*memory.MiB {
		d.fail("the pods were not raised: %v", d.limits())
	}
	return d
}

// TestAProgramIsKnownInAWorkloadThatIsCreatedAgain: with its kills, so that none is needed a second time.
func TestAProgramIsKnownInAWorkloadThatIsCreatedAgain(t *testing.T) {
	for _, mode := range []v1alpha1.SizingMode{v1alpha1.SizingOnCreate, v1alpha1.SizingInPlace} {
		d := raisedDay(t, mode)
		kills, total := d.kills, d.state.ledger.Total("app")
		d.recreated(true)
		d.deploy("rollout restart after a larger volume")
		d.run(time.Hour, 10*time.Second)
		if d.kills > kills || d.state.ledger.Total("app") != total {
			d.fail("%s: %d kills, and then %d; %d are known, and then %d", mode, kills, d.kills, total,
				d.state.ledger.Total("app"))
		}
	}
	d := raisedDay(t, v1alpha1.SizingInPlace)
	kills := d.kills
	d.recreated(false) // the webhook knows nothing
	if d.run(time.Hour, 10*time.Second); d.kills > kills {
		d.fail("%d kills of pods that were created again", d.kills-kills)
	}
}

// TestAnotherProgramOfThatNameStartsEmpty: another team's, or with other numbers of its owner, or of a month ago.
func TestAnotherProgramOfThatNameStartsEmpty(t *testing.T) {
	for name, change := range map[string]func(*day){
		"another image": func(d *day) { d.image, d.need["other"] = "other", 8*memory.MiB },
		"other numbers": func(d *day) { d.owner, d.need["web:1"] = sizeMi(16, 64), 8*memory.MiB },
		"36 days later": func(d *day) { d.now, d.need["web:1"] = d.now.Add(36*24*time.Hour), 8*memory.MiB },
	} {
		d := raisedDay(t, v1alpha1.SizingInPlace)
		change(d)
		d.recreated(false)
		if e := d.state.newest("app"); e.history.Samples() > 3 || len(e.Kin) != 1 || d.state.ledger.Total("app") > 0 ||
			d.shown.Containers[0].Recommended != nil || d.shown.OOMKills > 0 {
			d.fail("%s: it starts with %d samples, kin %v, %d kills and %+v", name, e.history.Samples(), e.Kin,
				d.state.ledger.Total("app"), d.shown.Containers[0].Recommended)
		}
	}
}

// TestALowerLimitIsWatchedAgainInAWorkloadThatIsCreatedAgain: also that of pods which have it already. A size that was
// rolled back is still known.
func TestALowerLimitIsWatchedAgainInAWorkloadThatIsCreatedAgain(t *testing.T) {
	t.Parallel()
	for _, orphans := range []bool{true, false} {
		d := newDay(t, v1alpha1.SizingInPlace, sizeMi(256, 512), 60*memory.MiB, 3)
		d.run(28*time.Hour, 2*time.Minute)
		if d.lowered() != 3 {
			d.fail("not all pods were lowered: %v", d.limits())
		}
		program := d.state.newest("app").Program
		revert := rollout.Revert{Container: "app", Program: program, Tried: sizeMi(8, 16), At: d.now}
		d.state.rollout.Reverts = []rollout.Revert{revert, {Container: "app", Program: "other", At: d.now}}
		d.state.rollout.Loans = []rescue.Loan{{UID: "gone", Container: "app"}}
		d.recreated(orphans)
		if st := &d.state.rollout; st.Proven("app", program).Limit > 0 || len(st.Reverts) != 1 || len(st.Loans) > 0 {
			d.fail("taken over are lowerings %+v, rollbacks %+v and loans %+v", st.Lowerings, st.Reverts, st.Loans)
		}
		if lowered := d.lowered(); !orphans && lowered > 0 {
			d.fail("%d pods were created with a lower limit that nobody watches", lowered)
		}
	}
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(256, 512), 60*memory.MiB, 3)
	d.run(28*time.Hour, 2*time.Minute)
	d.recreated(true)
	d.burst = 300 * memory.MiB
	for range 12 {
		d.now = d.now.Add(10 * time.Second)
		d.kubelet()
		d.step()
	}
	if d.lowered() > 0 {
		d.fail("a kill at a lower limit of the earlier workload does not restore the owner's: %v", d.limits())
	}
}

// TestNewPodsGetWhatRunningPodsHaveWithoutARecommendation: also where nothing is paused.
func TestNewPodsGetWhatRunningPodsHaveWithoutARecommendation(t *testing.T) {
	for name, tc := range map[string]struct{ owner, held, want memory.Size }{
		"more than the template": {sizeMi(16, 32), sizeMi(20, 64), sizeMi(20, 64)},
		"a larger limit only":    {sizeMi(16, 32), sizeMi(8, 64), sizeMi(16, 64)},
		"less":                   {sizeMi(16, 32), sizeMi(8, 24), memory.Size{}},
		"the template's":         {sizeMi(16, 32), sizeMi(16, 32), memory.Size{}},
		"none runs":              {sizeMi(16, 32), memory.Size{}, memory.Size{}},
		"no limit":               {sizeMi(16, 0), sizeMi(20, 64), sizeMi(20, 0)},
	} {
		c := creation{owner: tc.owner, running: tc.held}
		if got := c.size(); got != tc.want {
			t.Errorf("%s: new pods get %s, want %s", name, got, tc.want)
		}
	}
	d := raisedDay(t, v1alpha1.SizingInPlace)
	kills := d.kills
	d.state, d.shown = NewState(), v1alpha1.MemoryRecommendationStatus{} // all records are gone
	d.step()
	if d.deploy("rollout restart"); slices.Min(d.limits()) < 48*memory.MiB {
		d.fail("%d kills; new pods have %v", d.kills-kills, d.limits())
	}
}
