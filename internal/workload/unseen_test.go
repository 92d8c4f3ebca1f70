// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
)

// TestAPodThatCannotBeRead: two of three pods use 60Mi, and what the third uses is not known: 360Mi of 512Mi.
func TestAPodThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, mode := range []v1alpha1.SizingMode{v1alpha1.SizingInPlace, v1alpha1.SizingOnCreate} {
		t.Run(string(mode), func(t *testing.T) {
			d := newDay(t, mode, sizeMi(256, 512), 60*memory.MiB, 3)
			d.pods[2].unread, d.pods[2].need = true, 300*memory.MiB
			keeps := func() {
				t.Helper()
				c := &d.shown.Containers[0]
				for _, p := range d.pods {
					if p.size != d.owner {
						d.fail("%s has %s", p.name, p.size)
					}
				}
				if c.NewPods != nil && (c.NewPods.Limit.String() != "512Mi" || c.NewPods.Request.String() != "256Mi") {
					d.fail("new pods get %v", c.NewPods)
				}
				if c.Recommended.Limit.String() != "512Mi" || c.Recommended.Request.String() != "256Mi" ||
					!strings.Contains(strings.Join(c.Reasons, "\n"), "pod web-3 on node node-1 has not been read since") {
					d.fail("%v is recommended: %q", c.Recommended, c.Reasons)
				}
			}
			d.run(50*time.Hour, 2*time.Minute)
			keeps()
			d.restart()
			d.run(time.Hour, 2*time.Minute)
			keeps()
			d.replicas++
			d.scale() // the new one may be where the third is
			d.pods[3].need = 300 * memory.MiB
			d.run(time.Hour, 2*time.Minute)
			if d.kills > 0 {
				d.fail("%d kills", d.kills)
			}

		})
	}
}

// TestAPodThatIsNotReadAnyMore: a size that was proven while all pods were measured is kept, and not lowered further.
func TestAPodThatIsNotReadAnyMore(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(256, 512), 150*memory.MiB, 3)
	d.run(50*time.Hour, 2*time.Minute)
	had := d.pods[0].size
	if had.Limit >= d.owner.Limit {
		d.fail("nothing is lowered: %s", had)
	}
	d.pods[2].unread = true
	d.need["web:1"] = 40 * memory.MiB
	d.run(20*24*time.Hour, 20*time.Minute)
	d.replicas++
	d.scale()
	for _, p := range d.pods {
		if p.size != had {
			d.fail("%s has %s instead of %s", p.name, p.size, had)
		}
	}
	d.pods[2].unread = false
	d.run(3*24*time.Hour, 20*time.Minute)
	if now := d.pods[2].size; now.Limit >= had.Limit || d.kills > 0 {
		d.fail("%d kills; when its usage is read again, it has %s", d.kills, now)
	}
}

// TestACanaryBesideAPodThatIsNotReadAnyMore proves nothing until that is read again.
func TestACanaryBesideAPodThatIsNotReadAnyMore(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(256, 512), 150*memory.MiB, 3)
	d.named = governing(build.Profile("shop", "web", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingInPlace),
		func(s *v1alpha1.MemoryProfileSpec) {
			s.Sizing.Disruption = &v1alpha1.DisruptionSpec{Watch: &metav1.Duration{Duration: time.Hour}}
		}))
	for d.lowered() == 0 {
		d.run(2*time.Minute, 2*time.Minute)
	}
	for _, p := range d.pods {
		p.unread = p.size.Limit == d.owner.Limit
	}
	d.run(3*time.Hour, 2*time.Minute)
	if reason, message := d.applied(); d.lowered() != 1 || reason != v1alpha1.ReasonWatching ||
		!strings.Contains(message, "has not been read since") {
		d.fail("%d pods are lowered; %s: %s", d.lowered(), reason, message)
	}
	d.replicas++
	d.scale()
	if p := d.pods[3]; p.size.Limit < d.owner.Limit {
		d.fail("%s was created with %s", p.name, p.size)
	}
	for _, p := range d.pods {
		p.unread = false
	}
	d.run(9*time.Hour, 2*time.Minute)
	if d.lowered() != 4 {
		d.fail("%d pods are lowered when all are read", d.lowered())
	}
}
