// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/profile"
)

// sayWhole tells, in the reasons of each container that is to have another size, what becomes of the size of the whole
// pod in new pods.
func (d *decider) sayWhole(managed []managedContainer) {
	base := constraints.WholeSize(d.s.Template)
	if base == (constraints.Size{}) {
		return
	}
	var asks []constraints.Ask
	for i := range managed {
		c := &managed[i]
		size, found := d.v.recommended[c.Name]
		if mode := c.policy.Sizing.Mode; !found || !resizes(mode) && mode != v1alpha1.SizingOnCreate {
			continue
		}
		spec, _ := containerOf(d.s.Template, c.Name)
		want, have := constraints.Size(profile.SizeOf(size)), constraints.Size(sizeOf(spec.Resources))
		a := constraints.Ask{Container: c.Name, Base: have, Want: want, Never: c.sizePolicy().DecreaseNever}
		if have.Limit == 0 {
			a.Want, a.Part = have, want
			if have.Request > 0 && want.Request > 0 {
				a.Want.Request = want.Request
			}
		}
		asks = append(asks, a)
	}
	whole := constraints.WholeOf(d.s.Template, base, asks)
	text := ""
	switch {
	case whole.Left != "":
		text = "the whole pod (spec.resources) keeps its size: " + whole.Left
	case whole.Why != "":
		text = "new pods as a whole (spec.resources) get " + whole.Why
	case whole.Held != "":
		text = fmt.Sprintf("the whole pod keeps its limit of %s (spec.resources.limits.memory): %s", whole.Limit, whole.Held)
	default:
		return
	}
	for _, a := range asks {
		if a.Want == a.Base && a.Part == (constraints.Size{}) {
			continue
		}
		for i := range d.v.status.Containers {
			if c := &d.v.status.Containers[i]; c.Container == a.Container {
				c.Reasons = append(head(c.Reasons, 15), text)
			}
		}
	}
}
