// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
)

// coverage counts governed pods by how they compare with what the profile would set today.
type coverage struct {
	v1alpha1.Coverage
	// off is the number of pods whose profile sets nothing.
	off int32
	// outOfDate says about one stale or missed pod what it lacks, skipped about one skipped pod why.
	outOfDate, skipped string
	// outOfStep says about one pod that was resized in place what no longer fits its limit.
	outOfStep string
}

func cover(s *scene) coverage {
	var c coverage
	for _, pod := range s.governed {
		c.Governed++
		state, why := inject.Compare(pod, s.profile)
		switch state {
		case inject.UpToDate:
			c.Injected++
		case inject.Stale:
			c.Stale++
			c.outOfDate = or(c.outOfDate, "pod "+pod.Name+": "+why)
			// A pod's generation moves when its spec does, and after creation only a resize moves memory: its environment did not.
			if pod.Generation > 1 {
				c.outOfStep = or(c.outOfStep, "pod "+pod.Name+" was resized in place: "+why)
			}
		case inject.Missed:
			c.Missed++
			c.outOfDate = or(c.outOfDate, "pod "+pod.Name+": "+why)
		case inject.Skipped:
			c.Skipped++
			c.skipped = or(c.skipped, "pod "+pod.Name+": "+why)
		default:
			c.off++
		}
	}
	return c
}
