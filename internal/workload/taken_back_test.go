// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/build"
)

// TestALimitThatMayNotBeGivenBack: the right to resize is taken from memfit with the mode InPlace. As long as pods keep
// limits that memfit lowered, Applied says so, and what to do.
func TestALimitThatMayNotBeGivenBack(t *testing.T) {
	t.Parallel()
	const fix = "config/rbac/resize-pods grants the right"
	for _, mode := range []v1alpha1.SizingMode{
		v1alpha1.SizingOnCreate, v1alpha1.SizingRecommend, v1alpha1.SizingDisabled,
	} {
		t.Run(string(mode), func(t *testing.T) {
			d := newDay(t, v1alpha1.SizingInPlace, sizeMi(256, 512), 60*memory.MiB, 3)
			d.run(50*time.Hour, 2*time.Minute)
			if d.lowered() != 3 {
				d.fail("%d pods are lowered", d.lowered())
			}
			d.mayNot = func(rollout.Action) rollout.Outcome {
				return rollout.Outcome{Kind: rollout.OutcomeNoRight, Why: fix}
			}
			d.named = governing(build.Profile("shop", "web", v1alpha1.RuntimeNative, build.Sizing(mode)))
			d.run(time.Minute, time.Minute)
			shown := 0
			for range 60 {
				d.run(time.Minute, time.Minute)
				if reason, message := d.applied(); reason == v1alpha1.ReasonRefused && strings.Contains(message, fix) {
					shown++
				}
			}
			if reason, message := d.applied(); shown < 50 {
				d.fail("Applied shows it in %d of 60 minutes; %s: %s", shown, reason, message)
			}
			d.mayNot = nil
			d.run(time.Hour, time.Minute)
			if reason, message := d.applied(); d.lowered() > 0 || reason == v1alpha1.ReasonRefused {
				d.fail("%d pods are lowered with the right; %s: %s", d.lowered(), reason, message)
			}
		})
	}
}
