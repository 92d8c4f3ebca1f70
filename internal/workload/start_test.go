// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// A service imports data for two minutes and then needs a third of that memory. After three weeks without a new pod, a
// node is drained, the autoscaler adds pods, or a liveness probe restarts all.
func TestALowerLimitHoldsAStart(t *testing.T) {
	t.Parallel()
	events := map[string]func(*day){
		"drain": func(d *day) {
			d.pods = d.pods[1:]
			d.scale()
		},
		"scale-up": func(d *day) {
			d.replicas = 10
			d.scale()
		},
		"restarts": func(d *day) {
			for _, p := range d.pods {
				p.started = d.now
				p.restarts++
			}
		},
	}
	for name, event := range events {
		for _, mode := range []v1alpha1.SizingMode{v1alpha1.SizingInPlace, v1alpha1.SizingOnCreate} {
			d := newDay(t, mode, sizeMi(512, 2048), 300*memory.MiB, 3)
			d.start = 600 * memory.MiB
			d.run(10*time.Minute, 15*time.Second)
			d.run(21*24*time.Hour, 10*time.Minute)
			if mode == v1alpha1.SizingInPlace && d.pods[0].size.Limit > 1200*memory.MiB {
				d.fail("%s: limits %v were not lowered to what a start needs", name, d.limits())
			}
			d.kills = 0
			event(d)
			d.run(30*time.Minute, 10*time.Second)
			if d.kills > 0 {
				d.fail("%s, %s: %d kills of starting processes; limits are %v", mode, name, d.kills, d.limits())
			}
		}
	}
}
