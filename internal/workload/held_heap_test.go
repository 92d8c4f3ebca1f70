// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
)

// nodeDay is a Node.js program whose limit of 256Mi made a heap cap of 189Mi, which was enough for two hours.
func nodeDay(t *testing.T, mode v1alpha1.SizingMode, replicas int) *day {
	t.Helper()
	d := newDay(t, mode, sizeMi(128, 256), 40*memory.MiB, 0)
	d.named = governing(build.Profile("shop", "web", v1alpha1.RuntimeNodeJS, build.Sizing(mode)))
	d.replicas, d.live = replicas, 60*memory.MiB
	d.scale()
	if got := d.pods[0].heapCap(); got < 180*memory.MiB || got > 200*memory.MiB {
		t.Fatalf("a heap cap of %s", got)
	}
	d.run(2*time.Hour, time.Minute)
	return d
}

func (d *day) reason() (reason, message string) {
	c := meta.FindStatusCondition(d.shown.Conditions, v1alpha1.ConditionApplied)
	return c.Reason, c.Message
}

// TestARaiseIsCompleteWhenTheProcessCanUseIt: the live heap exceeds the cap that memfit wrote as a number. A resize
// changes the limit and not the number, with which the process starts again in the same pod.
func TestARaiseIsCompleteWhenTheProcessCanUseIt(t *testing.T) {
	for name, reports := range map[string]bool{"the kubelet reports the pod's cgroup": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			d := nodeDay(t, v1alpha1.SizingInPlaceOrEvict, 3)
			d.reports, d.live = reports, 230*memory.MiB
			d.run(time.Hour, 10*time.Second)
			if d.kills > 60 {
				d.fail("%d aborts", d.kills)
			}
			for _, p := range d.pods {
				if p.heapCap() < d.live || p.size.Limit > memory.GiB {
					d.fail("%s has a heap cap of %s in %s", p.name, p.heapCap(), p.size.Limit)
				}
			}
		})
	}
}

// TestAPodThatKeepsItsHeapCapIsNamed: without evictions people delete the pod.
func TestAPodThatKeepsItsHeapCapIsNamed(t *testing.T) {
	for name, reports := range map[string]bool{"the kubelet reports the pod's cgroup": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			d := nodeDay(t, v1alpha1.SizingInPlace, 3)
			d.reports, d.live = reports, 230*memory.MiB
			d.run(time.Hour, 10*time.Second)
			reason, message := d.reason()
			if reason != v1alpha1.ReasonNotEffective || !strings.Contains(message, "kubectl -n shop delete pod web-") ||
				!strings.Contains(message, "heap cap of 1") || d.shown.Problem == "" {
				d.fail("%s: %s; problem %q", reason, message, d.shown.Problem)
			}
			for _, line := range append(slices.Clone(d.log), message) {
				if strings.Contains(line, "138760") {
					d.fail("another cause is blamed: %s", line)
				}
			}
			d.deploy("people restart it")
			before := d.kills
			d.run(20*time.Minute, time.Minute)
			if reason, message = d.reason(); d.kills > before || reason != v1alpha1.ReasonUpToDate {
				d.fail("%d aborts after it; %s: %s", d.kills-before, reason, message)
			}
		})
	}
}

// TestAbortsAtOneHeapCapAskForOneRaise: however often the process aborts, its cap is the one of 256Mi.
func TestAbortsAtOneHeapCapAskForOneRaise(t *testing.T) {
	for _, replicas := range []int{1, 3} {
		for _, backoff := range []time.Duration{0, 5 * time.Minute} {
			d := nodeDay(t, v1alpha1.SizingInPlace, replicas)
			d.live, d.backoff, d.reports = 230*memory.MiB, backoff, true
			d.run(4*time.Hour, 30*time.Second)
			if most := slices.Max(d.limits()); most > memory.GiB {
				d.fail("%d replicas: %s after %d aborts at a cap of 256Mi", replicas, most, d.kills)
			}
		}
	}
}

// TestAGoProgramBeyondItsMemoryLimit collects without end: GOMEMLIMIT of its pod is for the limit that killed it.
func TestAGoProgramBeyondItsMemoryLimit(t *testing.T) {
	t.Parallel()
	mode := v1alpha1.SizingInPlaceOrEvict
	d := newDay(t, mode, sizeMi(128, 256), 100*memory.MiB, 0)
	d.named, d.replicas = governing(build.Profile("shop", "web", v1alpha1.RuntimeGo, build.Sizing(mode))), 3
	d.scale()
	d.run(2*time.Hour, time.Minute)
	d.need[d.image] = 330 * memory.MiB
	d.run(time.Hour, 10*time.Second)
	for _, p := range d.pods {
		for _, e := range p.env {
			if n, _ := strconv.ParseUint(e.Value, 10, 64); e.Name == "GOMEMLIMIT" &&
				memory.FromUint64(n) < d.need[d.image] {
				d.fail("%s uses %s, and has %s=%s", p.name, d.need[d.image], e.Name, e.Value)
			}
		}
	}
	if d.kills > 6 {
		d.fail("%d kills", d.kills)
	}
}
