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

// TestBound: a size that was found before (256Mi, request 128Mi), under a policy that has changed since.
func TestBound(t *testing.T) {
	stands := memory.Size{Limit: 256 * mib, Request: 128 * mib}
	for name, tc := range map[string]struct {
		policy  Policy
		current memory.Size
		size    memory.Size // zero: stands
		want    memory.Size
		why     string // part of the sentences; empty: there are none
	}{
		"nothing speaks against it": {want: stands},
		"limit.max lowered": {
			policy: Policy{LimitMax: 128 * mib}, want: memory.Size{Limit: 128 * mib, Request: 128 * mib},
			why: "clamped from 256Mi to limit.max 128Mi",
		},
		"and below the request": {
			policy: Policy{LimitMax: 100 * mib}, want: memory.Size{Limit: 100 * mib, Request: 100 * mib},
			why: "request 100Mi instead of 128Mi: a request is at most the limit",
		},
		"limit.min raised": {
			policy: Policy{LimitMin: 512 * mib}, want: memory.Size{Limit: 512 * mib, Request: 128 * mib},
			why: "raised from 256Mi to limit.min 512Mi",
		},
		"request.max lowered": {
			policy: Policy{RequestMax: 64 * mib}, want: memory.Size{Limit: 256 * mib, Request: 64 * mib},
			why: "request 64Mi instead of 128Mi: request.max",
		},
		"request.min raised": {
			policy: Policy{RequestMin: 200 * mib}, want: memory.Size{Limit: 256 * mib, Request: 200 * mib},
			why: "request 200Mi instead of 128Mi: request.min",
		},
		"request.min above the limit": {
			policy: Policy{RequestMin: 999 * mib}, want: memory.Size{Limit: 256 * mib, Request: 256 * mib},
			why: "a request is at most the limit",
		},
		"request equals limit now": {
			policy: Policy{RequestEqualsLimit: true}, want: memory.Size{Limit: 256 * mib, Request: 256 * mib},
			why: "requestPolicy is EqualsLimit",
		},
		"a volume of 400Mi": {
			policy: Policy{VolumeSizeLimits: 400 * mib}, current: memory.Size{Limit: 512 * mib, Request: 300 * mib},
			want: memory.Size{Limit: 400 * mib, Request: 128 * mib},
			why:  "limit stays at 400Mi although 256Mi is enough: memory-backed volumes may hold 400Mi (sizeLimit)",
		},
		"a volume of 400Mi, and no limit yet": {
			policy: Policy{VolumeSizeLimits: 400 * mib}, want: memory.Size{Limit: 400 * mib, Request: 128 * mib},
			why: "memory-backed volumes may hold 400Mi",
		},
		"a volume above the limit that it has": {
			policy: Policy{VolumeSizeLimits: 400 * mib}, current: memory.Size{Limit: 300 * mib, Request: 300 * mib},
			want: memory.Size{Limit: 300 * mib, Request: 128 * mib}, why: "limit stays at 300Mi although 256Mi is enough",
		},
		"a volume above the limit, raised": {
			policy: Policy{VolumeSizeLimits: 400 * mib}, current: memory.Size{Limit: 64 * mib, Request: 64 * mib}, want: stands,
		},
		"a volume of 400Mi, and limit.max": {
			policy: Policy{VolumeSizeLimits: 400 * mib, LimitMax: 256 * mib}, current: memory.Size{Limit: 512 * mib},
			want: stands,
		},
		"decrease: Never, a lower size": {
			policy: Policy{DecreaseNever: true}, current: memory.Size{Limit: 512 * mib, Request: 300 * mib},
			want: memory.Size{Limit: 512 * mib, Request: 300 * mib},
			why:  "limit stays at 512Mi although 256Mi is enough: decrease is Never",
		},
		"decrease: Never, a higher one": {
			policy: Policy{DecreaseNever: true}, current: memory.Size{Limit: 64 * mib, Request: 64 * mib}, want: stands,
		},
		"decrease: Never, above limit.max": {
			policy: Policy{DecreaseNever: true, LimitMax: 300 * mib}, current: memory.Size{Limit: 512 * mib},
			want: memory.Size{Limit: 300 * mib, Request: 128 * mib}, why: "limit.max 300Mi",
		},
		"decrease: Never, and no limit": {
			policy: Policy{DecreaseNever: true, VolumeSizeLimits: 400 * mib}, want: memory.Size{Request: 128 * mib},
			why: "limit stays at none although 256Mi is enough: decrease is Never",
		},
		"decrease: Never, no limit, and limit.max": {
			policy: Policy{DecreaseNever: true, LimitMax: 900 * mib}, want: memory.Size{Limit: 900 * mib, Request: 128 * mib},
			why: "limit.max 900Mi",
		},
		"decrease: Never, and only the pod has a limit": {
			policy: Policy{DecreaseNever: true, SharesLimit: true}, want: stands,
		},
		"the pod's own limit": {
			policy: Policy{PodLimit: 128 * mib}, want: memory.Size{Limit: 128 * mib, Request: 128 * mib},
			why: "the limit of the whole pod, 128Mi (spec.resources.limits.memory)",
		},
		"it is less than limit.min": {
			policy: Policy{PodLimit: 128 * mib, LimitMin: 200 * mib}, want: memory.Size{Limit: 128 * mib, Request: 128 * mib},
			why: "spec.resources.limits.memory",
		},
		"what its request leaves": {
			policy: Policy{PodRequest: 32 * mib}, want: memory.Size{Limit: 256 * mib, Request: 32 * mib},
			why: "spec.resources.requests.memory",
		},
		"its request leaves nothing": {
			policy: Policy{PodRequest: 1}, want: memory.Size{Limit: 256 * mib}, why: "request none instead of 128Mi",
		},
		"no limit was asked for": {
			policy: Policy{LimitMin: 64 * mib, LimitMax: 100 * mib}, size: memory.Size{Request: 32 * mib},
			want: memory.Size{Request: 32 * mib},
		},
		"no request was asked for": {
			policy: Policy{RequestMin: 64 * mib}, size: memory.Size{Limit: 256 * mib}, want: memory.Size{Limit: 256 * mib},
		},
		"below what the API defaults": {
			policy: defaults, size: memory.Size{Limit: mib, Request: mib}, want: memory.Size{Limit: 16 * mib, Request: 16 * mib},
			why: "limit.min 16Mi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			size := tc.size
			if size == (memory.Size{}) {
				size = stands
			}
			got, why := tc.policy.Bound(size, tc.current)
			if got != tc.want {
				t.Errorf("bounded to %+v, want %+v (%q)", got, tc.want, why)
			}
			if text := strings.Join(why, "; "); !strings.Contains(text, tc.why) || tc.why == "" && text != "" {
				t.Errorf("why is %q, want %q in it", text, tc.why)
			}
			if again, more := tc.policy.Bound(got, tc.current); again != got || len(more) > 0 {
				t.Errorf("bounded again it is %+v (%q), want the same", again, more)
			}
		})
	}
}

// TestOutsideTheBounds: a size a little outside the bounds is not near enough to be kept.
func TestOutsideTheBounds(t *testing.T) {
	have := memory.Size{Limit: 256 * mib, Request: 128 * mib}
	for name, tc := range map[string]struct {
		policy Policy
		want   memory.Size
		differ bool
	}{
		"a little away": {want: memory.Size{Limit: 250 * mib, Request: 128 * mib}},
		"a little above max": {
			policy: Policy{LimitMax: 250 * mib}, want: memory.Size{Limit: 250 * mib, Request: 128 * mib}, differ: true,
		},
		"a little below min": {
			policy: Policy{LimitMin: 260 * mib}, want: memory.Size{Limit: 260 * mib, Request: 128 * mib}, differ: true,
		},
		"request a little high": {
			policy: Policy{RequestMax: 125 * mib}, want: memory.Size{Limit: 256 * mib, Request: 125 * mib}, differ: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.policy.MinChangePercent = defaults.MinChangePercent
			if got := Differs(have, tc.want, tc.policy); got != tc.differ {
				t.Errorf("worth a change: %t, want %t", got, tc.differ)
			}
		})
	}
}

// TestWhatIsOutsideTheBoundsIsNotKept: use asks for about what the container has, but the owner allows a little less.
func TestWhatIsOutsideTheBoundsIsNotKept(t *testing.T) {
	h := history.New()
	now := feed(h, 9*day, 240*mib, flat(200*mib))
	have := memory.Size{Request: 215 * mib, Limit: 240 * mib}
	got := Evaluate(Input{Policy: defaults, History: h, Current: have, Now: now})
	if got.Decision != Keep || got.Size != have {
		t.Fatalf("got %s %v, want Keep %v", got.Decision, got.Size, have)
	}
	got = Evaluate(Input{History: h, Current: have, Now: now, Policy: limitMax(229 * mib)})
	if got.Decision != Decrease || got.Size.Limit != 229*mib || !says(got, "limit.max 229Mi") {
		t.Errorf("got %s %v, want Lower to 229Mi:\n%s", got.Decision, got.Size, strings.Join(got.Reasons, "\n"))
	}
	got = Evaluate(Input{History: h, Current: have, Now: now, Policy: with(func(p *Policy) { p.RequestMax = 205 * mib })})
	if got.Decision != Decrease || got.Size != (memory.Size{Request: 205 * mib, Limit: 240 * mib}) {
		t.Errorf("got %s %v, want the request lowered to 205Mi", got.Decision, got.Size)
	}
}

// TestIncreaseAfterKill: use asks for more than the container has, and its owner wants a kill first.
func TestIncreaseAfterKill(t *testing.T) {
	h := history.New()
	now := feed(h, 9*day, 240*mib, flat(235*mib))
	in := Input{
		History: h, Current: memory.Size{Request: 120 * mib, Limit: 240 * mib}, Now: now,
		Policy: with(func(p *Policy) { p.IncreaseAfterKill, p.DecreaseNever = true, true }),
	}
	got := Evaluate(in)
	if got.Size.Limit != 240*mib || !says(got, "limit stays at 240Mi although use needs") {
		t.Errorf("nothing was killed: %s %v:\n%s", got.Decision, got.Size, strings.Join(got.Reasons, "\n"))
	}
	if got.Size.Request <= 120*mib || got.Size.Request > 240*mib {
		t.Errorf("the request is not raised to what is used: %v", got.Size)
	}
	kill := memory.OOMKill{Kind: memory.OOMMainProcess, Limit: 240 * mib, Peak: 239 * mib}
	for name, tc := range map[string]struct {
		ago    time.Duration
		limit  memory.Bytes
		raised bool
	}{
		"just now":                 {limit: 240 * mib, raised: true},
		"five days ago":            {ago: 5 * day, limit: 240 * mib, raised: true},
		"at a limit that was less": {ago: 5 * day, limit: 100 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			kill := kill
			kill.Time, kill.Limit, kill.Peak = now.Add(-tc.ago), tc.limit, min(kill.Peak, tc.limit)
			in.Kills = []memory.OOMKill{kill}
			if got := Evaluate(in); got.Size.Limit > 240*mib != tc.raised {
				t.Errorf("%s %v:\n%s", got.Decision, got.Size, strings.Join(got.Reasons, "\n"))
			}
		})
	}
	in.Kills, in.Current.Limit = nil, 0
	if got := Evaluate(in); got.Size.Limit != 0 {
		t.Errorf("a first limit is lower than none: %v", got.Size)
	}
	in.Policy.DecreaseNever = false
	if got := Evaluate(in); got.Size.Limit == 0 {
		t.Errorf("a first limit is not a raise: %v", got.Size)
	}
}

// TestALimitIsNotLoweredBelowWhatVolumesMayHold: a program with 60Mi of its own and a volume of 200Mi, of which it has
// used little so far.
func TestALimitIsNotLoweredBelowWhatVolumesMayHold(t *testing.T) {
	h := history.New()
	now := feed(h, 26*time.Hour, 512*mib, flat(60*mib))
	for limit, want := range map[memory.Bytes]memory.Bytes{512 * mib: 260 * mib, 240 * mib: 240 * mib, 0: 260 * mib} {
		rec := Evaluate(Input{
			History: h, Current: sizeOf(0, limit), Now: now, Policy: with(func(p *Policy) { p.VolumeSizeLimits = 200 * mib }),
		})
		if rec.Size.Limit != want || !says(rec, "memory-backed volumes may hold 200Mi") {
			t.Errorf("limit %s becomes %s, want %s: %q", limit, rec.Size.Limit, want, rec.Reasons)
		}
		low := Evaluate(Input{Policy: defaults, History: h, Current: sizeOf(0, limit), Now: now})
		if low.Size.Limit >= 200*mib {
			t.Errorf("without a volume the limit is %s, so this tests nothing", low.Size.Limit)
		}
	}
}

// TestALimitIsNotLoweredBelowTheOwnersHeap: -Xmx2g under 3Gi, of which a day used 700Mi.
func TestALimitIsNotLoweredBelowTheOwnersHeap(t *testing.T) {
	h := history.New()
	now := feed(h, 26*time.Hour, 3*gib, flat(700*mib))
	owned := Traits{OwnHeap: 2 * gib, OwnHeapBy: "-Xmx2g"}
	for limit, want := range map[memory.Bytes]memory.Bytes{3 * gib: 2356 * mib, 2 * gib: 2 * gib, 0: 2356 * mib} {
		in := Input{History: h, Current: sizeOf(0, limit), Now: now, Policy: defaults, Traits: owned}
		rec := Evaluate(in)
		have := rec.Size.Limit
		if have != want || !says(rec, "-Xmx2g permits a heap of 2Gi") {
			t.Errorf("limit %s becomes %s, want %s: %q", limit, have, want, rec.Reasons)
		}
		in.Traits = Traits{}
		if low := Evaluate(in); low.Size.Limit >= gib {
			t.Errorf("without a heap of the owner the limit is %s, so this tests nothing", low.Size.Limit)
		}
	}
}
