// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// TestARequestIsNotLoweredByAKill: seen on a node, one sample of 9 MiB after a kill at 256Mi made 16Mi of a request of
// 64Mi.
func TestARequestIsNotLoweredByAKill(t *testing.T) {
	h := history.New()
	h.Add(sample("pod-0", start.Add(-time.Minute), 9*mib), 256*mib)
	got := Evaluate(
		Input{
			Policy: defaults, History: h, Kills: []memory.OOMKill{kill(start, 256*mib)}, Current: sizeOf(64*mib, 256*mib),
			Now: start.Add(time.Second),
		},
	)
	if got.Decision != Increase || got.Size.Request != 64*mib || !says(got, "request stays at 64Mi") {
		t.Errorf("got %s\n%s", got.Summary, strings.Join(got.Reasons, "\n"))
	}
	// Neither a day of little use nor the kill makes it less within the hour.
	h = history.New()
	now := feed(h, 9*day, 256*mib, flat(20*mib))
	got = Evaluate(
		Input{
			Policy: defaults, History: h, Kills: []memory.OOMKill{kill(now, 256*mib)}, Current: sizeOf(64*mib, 256*mib),
			Now: now.Add(time.Second),
		},
	)
	if got.Size.Request != 64*mib {
		t.Errorf("after 9 days and a kill: %s", got.Summary)
	}
}

// TestARequestIsNotLoweredOnLessThanADay, as a limit is not.
func TestARequestIsNotLoweredOnLessThanADay(t *testing.T) {
	for span, want := range map[time.Duration]memory.Bytes{
		2 * time.Hour: 160 * mib, 5 * time.Hour: 160 * mib, 25 * time.Hour: 108 * mib,
	} {
		h := history.New()
		now := feed(h, span, 224*mib, flat(100*mib))
		if got := Evaluate(
			Input{Policy: defaults, History: h, Current: sizeOf(160*mib, 224*mib), Now: now},
		); !within(got.Size.Request, want, 5) {
			t.Errorf("after %s: %s, want a request of about %s", span, got.Summary, want)
		}
	}
}

// TestARequestHoldsWhatIsInUse: seen on a node, 706Mi were used for an hour under a request of 95Mi and "Hold".
func TestARequestHoldsWhatIsInUse(t *testing.T) {
	young := history.New()
	for i := range 3 {
		young.Add(sample("pod-0", start.Add(time.Duration(i)*time.Minute), 706*mib), 1332*mib)
	}
	old := history.New()
	now := feed(old, 9*day, 1332*mib, flat(90*mib))
	for name, tc := range map[string]struct {
		in       Input
		want     memory.Bytes
		decision Decision
		says     string
	}{
		"too young for a size": {
			Input{
				Policy: defaults, History: young, Current: sizeOf(95*mib, 1332*mib), InUse: 706 * mib,
				InUseSeen: start.Add(170 * time.Second), Now: start.Add(3 * time.Minute),
			},
			812 * mib, Increase,
			"Increase request 95Mi to 812Mi, limit stays 1.3Gi: 706Mi was in use at 00:02:50Z; 3 samples over 2 min so far",
		},
		"no samples kept": {
			Input{
				Policy: defaults, Current: sizeOf(95*mib, 1332*mib), InUse: 706 * mib, Now: start,
			}, 812 * mib, Increase, "Increase request",
		},
		"enough already": {
			Input{
				Policy: defaults, History: young, Current: sizeOf(706*mib, 1332*mib), InUse: 706 * mib,
				Now: start.Add(3 * time.Minute),
			}, 0,
			Hold, "Hold: 3 samples",
		},
		"far above usual use": {
			Input{
				History: old, Current: sizeOf(104*mib, 1332*mib), InUse: 706 * mib, Policy: decreaseNever, Now: now,
			}, 812 * mib, Increase, "706Mi was in use at",
		},
		"a little above": {
			Input{
				Policy: defaults, History: old, Current: sizeOf(96*mib, 112*mib), InUse: 97 * mib, Now: now,
			}, 112 * mib, Increase,
			"97Mi was in use at",
		},
		"never above the limit": {
			Input{
				Policy: defaults, History: young, Current: sizeOf(95*mib, 720*mib), InUse: 706 * mib,
				Now: start.Add(3 * time.Minute),
			},
			720 * mib, Increase, "Increase request",
		},
		"as far as the owner lets it": {
			Input{
				History: young, Current: sizeOf(95*mib, 1332*mib), InUse: 706 * mib,
				Policy: with(func(p *Policy) { p.RequestMax = 256 * mib }),
				Now:    start.Add(3 * time.Minute),
			}, 256 * mib, Increase, "Increase request 95Mi to 256Mi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Evaluate(tc.in)
			if got.Decision != tc.decision || got.Size.Request != tc.want || !strings.Contains(got.Summary, tc.says) {
				t.Errorf(
					"got %s %v %q, want %s with a request of %s and %q", got.Decision, got.Size, got.Summary, tc.decision, tc.want,
					tc.says,
				)
			}
			if got.UseAboveRequest != (tc.decision == Increase) {
				t.Errorf("UseAboveRequest is %t", got.UseAboveRequest)
			}
		})
	}
}

// TestARequestDoesNotFollowEachMiB: use that creeps up moves it a few times, not with every sample.
func TestARequestDoesNotFollowEachMiB(t *testing.T) {
	h, have, changes := history.New(), sizeOf(100*mib, gib), 0
	for use := 100 * mib; use < 200*mib; use += mib {
		got := Evaluate(Input{Policy: defaults, History: h, Current: have, InUse: use, Now: start})
		if have.Request < use && got.Decision != Increase {
			t.Fatalf("%s in use, request %s: %s", use, have.Request, got.Summary)
		}
		if got.Decision == Increase {
			have, changes = got.Size, changes+1
		}
	}
	if changes > 6 {
		t.Errorf("100 steps of 1 MiB from 100 to 200 MiB were %d changes, want at most 6", changes)
	}
}

// TestARequestIsNotLoweredBelowCacheInUse: a database uses 1.2Gi and reads 4Gi of files again and again, which the
// kubelet counts when it ranks pods for eviction. Its limit.min is its limit, as the recipe has it.
func TestARequestIsNotLoweredBelowCacheInUse(t *testing.T) {
	for name, tc := range map[string]struct {
		cache, request memory.Bytes
		want           string
	}{
		"a database":                {cache: 4 * gib, request: 6 * gib, want: "5.3Gi"},
		"one that requests less":    {cache: 4 * gib, request: 2 * gib, want: "2Gi"},
		"little cache":              {cache: 100 * mib, request: 6 * gib, want: "1.3Gi"},
		"a request that is too low": {cache: 4 * gib, request: 512 * mib, want: "1.4Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			h := history.New()
			at := start
			for ; at.Before(start.Add(26 * time.Hour)); at = at.Add(5 * time.Minute) {
				s := sample("pod-0", at, 1228*mib)
				s.WorkingSet += tc.cache
				h.Add(s, 6*gib)
			}
			rec := Evaluate(Input{
				History: h, Current: sizeOf(tc.request, 6*gib), Now: at, InUse: 1228 * mib, InUseSeen: at,
				Policy: with(func(p *Policy) { p.LimitMin = 6 * gib }),
			})
			if rec.Size.Request.String() != tc.want {
				t.Errorf("request %s, want %s: %q", rec.Size.Request, tc.want, rec.Reasons)
			}
		})
	}
}
