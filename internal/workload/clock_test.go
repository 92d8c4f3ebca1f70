// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// TestKillsAreAnsweredByALeaderWhoseClockIsAhead: no sample is taken then, and the kubelets' times are long past. What
// a status did not show yet is newer than that look, whatever the clocks are.
func TestKillsAreAnsweredByALeaderWhoseClockIsAhead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		burst, backoff time.Duration // since the leader began, and after each kill
	}{
		"pods that ran":                         {burst: time.Hour},
		"pods that ran, and then are down":      {burst: time.Hour, backoff: 5 * time.Minute},
		"pods that fail since before":           {},
		"pods that fail since before, and wait": {backoff: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDay(t, v1alpha1.SizingInPlace, sizeMi(64, 128), 60*memory.MiB, 3)
			d.backoff = tc.backoff
			d.run(2*time.Hour, time.Minute)
			if tc.burst == 0 {
				d.burst = 200 * memory.MiB
				d.kubelet()
			}
			d.ahead = 26 * time.Hour
			d.restart()
			d.run(tc.burst, time.Minute)
			d.burst = 200 * memory.MiB
			d.run(time.Hour, 10*time.Second)
			for _, l := range d.limits() {
				if l < 260*memory.MiB {
					d.fail("limits are %v after %d kills", d.limits(), d.kills)
				}
			}
		})
	}
}
