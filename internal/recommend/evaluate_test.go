// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

const (
	mib = memory.MiB
	gib = memory.GiB
)

var start = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC) // a Monday

// defaults is what an empty profile asks for (internal/profile).
var defaults = Policy{
	HeadroomPercent: 15, MinMarginPercent: 5, KillPrice: Balanced, LimitMin: 16 * mib, RequestMin: 16 * mib,
	OOMFactorPercent: 150, OOMMinIncrease: 64 * mib, MinChangePercent: 10,
}

// with returns the defaults with something else in some fields.
func with(edit func(p *Policy)) Policy {
	p := defaults
	edit(&p)
	return p
}

func limitMax(limit memory.Bytes) Policy { return with(func(p *Policy) { p.LimitMax = limit }) }

func posed(price memory.Bytes) Policy { return with(func(p *Policy) { p.KillPrice = price }) }

var decreaseNever = with(func(p *Policy) { p.DecreaseNever = true })

func sizeOf(request, limit memory.Bytes) memory.Size {
	return memory.Size{Request: request, Limit: limit}
}

// feed adds one sample every five minutes from start for the given time; use gives the demand at a time since start.
func feed(
	h *history.Container, span time.Duration, limit memory.Bytes, use func(since time.Duration) memory.Bytes,
) time.Time {
	at := start
	for since := time.Duration(0); since <= span; since += 5 * time.Minute {
		at = start.Add(since)
		h.Add(sample("pod-0", at, use(since)), limit)
	}
	return at
}

func sample(pod string, at time.Time, use memory.Bytes) memory.Sample {
	return memory.Sample{
		Container: memory.ContainerRef{Namespace: "shop", Pod: pod, UID: types.UID(pod), Container: "web"},
		Time:      at, Started: start.Add(-time.Hour), RSS: use, HasRSS: true, WorkingSet: use, Exact: true,
	}
}

func flat(use memory.Bytes) func(time.Duration) memory.Bytes {
	return func(time.Duration) memory.Bytes { return use }
}

func kill(at time.Time, limit memory.Bytes) memory.OOMKill {
	return memory.OOMKill{
		Kind: memory.OOMMainProcess, Time: at, Limit: limit, Peak: limit, Uptime: time.Minute, Confidence: memory.High,
	}
}

// says is true when some reason has all the words.
func says(r Recommendation, words ...string) bool {
	for _, reason := range r.Reasons {
		all := true
		for _, w := range words {
			all = all && strings.Contains(reason, w)
		}
		if all {
			return true
		}
	}
	return false
}

func TestEvaluateHoldsUntilEvidenceSuffices(t *testing.T) {
	for name, c := range map[string]struct {
		feed func(h *history.Container) time.Time
		want string
	}{
		"nothing seen": {
			func(*history.Container) time.Time { return start }, "Hold: no memory samples yet",
		},
		"half an hour": {
			func(h *history.Container) time.Time { return feed(h, 30*time.Minute, 512*mib, flat(100*mib)) },
			"Hold: 7 samples over 30 min so far; a size needs 10 over 1 h",
		},
		"data stopped two hours ago": {
			func(h *history.Container) time.Time {
				return feed(h, 9*day, 512*mib, flat(100*mib)).Add(2 * time.Hour)
			},
			"Hold: no memory samples since 2026-03-11T00:00:00Z: recommendation unchanged until metrics return; see " +
				"UsageAvailable of the profile",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := history.New()
			now := c.feed(h)
			got := Evaluate(Input{Policy: defaults, History: h, Current: sizeOf(256*mib, 512*mib), Now: now})
			if got.Decision != Hold || got.Size != (memory.Size{}) || got.Summary != c.want {
				t.Errorf("got %s %+v %q, want Hold without a size: %q", got.Decision, got.Size, got.Summary, c.want)
			}
		})
	}
}

// TestAHeapTooSmallForWhatIsAlive: minutes of use are enough to raise a limit in which a collector hardly gets
// anything done, within the owner's bounds; a limit that is sufficient is not raised for it, and not lowered below it
// either.
func TestAHeapTooSmallForWhatIsAlive(t *testing.T) {
	why := "in pod web the last collection found 53Mi alive"
	evaluate := func(limit memory.Bytes, span time.Duration, p Policy) Recommendation {
		h := history.New()
		now := feed(h, span, limit, flat(70*mib))
		return Evaluate(Input{
			History: h, Current: memory.Size{Limit: limit, Request: 60 * mib}, InUse: 70 * mib, Now: now, Policy: p,
			Ease: Ease{Limit: 131 * mib, Why: why},
		})
	}
	got := evaluate(88*mib, 10*time.Minute, defaults)
	if got.Decision != Increase || got.Size.Limit != 131*mib || got.Confidence != memory.Low ||
		!says(got, "131Mi: "+why) ||
		!strings.HasPrefix(got.Summary, "Increase limit 88Mi to 131Mi, request 60Mi to 81Mi: "+why) {
		t.Errorf("%+v", got)
	}
	if got = evaluate(88*mib, 10*time.Minute, limitMax(100*mib)); got.Size.Limit != 100*mib {
		t.Errorf("limit.max 100Mi: %+v", got)
	}
	afterKill := with(func(p *Policy) { p.IncreaseAfterKill = true })
	if got = evaluate(88*mib, 10*time.Minute, afterKill); got.Size.Limit != 88*mib {
		t.Errorf("increase is AfterKill: %+v", got)
	}
	if got = evaluate(512*mib, 10*time.Minute, defaults); got.Size.Limit != 512*mib {
		t.Errorf("a limit with room: %+v", got)
	}
	if got = evaluate(512*mib, 48*time.Hour, defaults); got.Decision != Decrease || got.Size.Limit != 131*mib {
		t.Errorf("a limit with room, after two days: %+v", got)
	}
}

func TestReasonsReadFromEvidenceToNumber(t *testing.T) {
	h := history.New()
	now := feed(h, 9*day, gib, flat(412*mib))
	got := Evaluate(Input{
		History: h, Policy: limitMax(448 * mib), Current: sizeOf(gib, gib), Now: now,
	})
	want := []string{
		"peak demand 412Mi over 9 days (1 replica, 3k samples)",
		"460Mi is 48Mi above the last day's peak of 412Mi: 0.083 kills are expected in 100 days like the last 10; " +
			"10 % less would save 46Mi and cost 65 more, worth 6.5Gi (posture: a kill is worth 10Gi held for a day)",
		"clamped from 460Mi to limit.max 448Mi",
		"request: 90 % of hours peaked at 416Mi or less, + a third of the headroom = 437Mi",
	}
	if diff := cmp.Diff(want, got.Reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	if want := (memory.Size{Request: 437 * mib, Limit: 448 * mib}); got.Decision != Decrease || got.Size != want {
		t.Errorf("got %s %v, want Lower %v", got.Decision, got.Size, want)
	}
	if want := "Decrease limit 1Gi to 448Mi, request 1Gi to 437Mi: peak demand 412Mi over 9 days"; got.Summary != want {
		t.Errorf("summary %q, want %q", got.Summary, want)
	}
	if got.Confidence != memory.High {
		t.Errorf("confidence %s, want High after 9 days", got.Confidence)
	}
}

func TestBoundsAreNamedWhenTheyApply(t *testing.T) {
	for name, c := range map[string]struct {
		policy Policy
		have   memory.Size
		want   memory.Bytes
		says   []string
	}{
		"limit.min": {
			with(func(p *Policy) { p.LimitMin = gib }), memory.Size{}, gib, []string{"raised from 227Mi to limit.min 1Gi"},
		},
		"limit.max": {
			limitMax(210 * mib), memory.Size{}, 210 * mib, []string{"clamped from 227Mi to limit.max 210Mi"},
		},
		"decrease Never": {
			decreaseNever, sizeOf(512*mib, 512*mib), 512 * mib, []string{"decrease is Never"},
		},
		"max beats Never": {
			with(func(p *Policy) { p.DecreaseNever, p.LimitMax = true, 400*mib }), sizeOf(512*mib, 512*mib), 400 * mib,
			[]string{"limit.max 400Mi"},
		},
		"minChange": {
			defaults, sizeOf(213*mib, 250*mib), 250 * mib, []string{"250Mi is 50Mi above the last day's peak of 200Mi"},
		},
		"every change": {with(func(p *Policy) { p.MinChangePercent = 0 }), sizeOf(213*mib, 240*mib), 240 * mib, nil},
		"headroom 50": {
			with(func(p *Policy) { p.HeadroomPercent, p.MinMarginPercent = 50, 50 }), memory.Size{}, 300 * mib,
			[]string{"300Mi is 100Mi above the last day's peak of 200Mi"},
		},
		"no headroom": {
			with(func(p *Policy) { p.HeadroomPercent, p.MinMarginPercent = 0, 0 }), memory.Size{}, 227 * mib,
			[]string{"227Mi is 27Mi above the last day's peak of 200Mi"},
		},
		"nothing to change": {defaults, sizeOf(210*mib, 240*mib), 240 * mib, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := history.New()
			now := feed(h, 9*day, gib, flat(200*mib))
			got := Evaluate(Input{History: h, Policy: c.policy, Current: c.have, Now: now})
			if got.Size.Limit != c.want || c.says != nil && !says(got, c.says...) {
				t.Errorf("got %s %v, want limit %s and a reason with %q; reasons:\n%s",
					got.Decision, got.Size, c.want, c.says, strings.Join(got.Reasons, "\n"))
			}
		})
	}
}

func TestSmallContainersAreSizedByTheirNeed(t *testing.T) {
	for need := 20 * mib; need <= 100*mib; need += 5 * mib {
		h := history.New()
		now := feed(h, 9*day, 512*mib, flat(need))
		got := Evaluate(Input{Policy: defaults, History: h, Current: sizeOf(512*mib, 512*mib), Now: now})
		if most := need.Percent(115).Plus(8 * mib); got.Size.Limit < need || got.Size.Limit > most ||
			got.Size.Limit%mib != 0 {
			t.Errorf("need %s: limit %s, want whole MiB up to %s", need, got.Size.Limit, most)
		}
	}
}

func TestRequestFollowsUsualUseOrTheLimit(t *testing.T) {
	burst := func(since time.Duration) memory.Bytes {
		if since%day < 30*time.Minute {
			return 800 * mib
		}
		return 200 * mib
	}
	for name, c := range map[string]struct {
		policy Policy
		want   memory.Bytes
	}{
		"usual use":   {defaults, 215 * mib},
		"as limit":    {with(func(p *Policy) { p.RequestEqualsLimit = true }), 882 * mib},
		"never down":  {decreaseNever, 500 * mib},
		"request.max": {with(func(p *Policy) { p.RequestMax = 128 * mib }), 128 * mib},
		"request.min": {with(func(p *Policy) { p.RequestMin = 300 * mib }), 300 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			h := history.New()
			now := feed(h, 9*day, gib, burst)
			got := Evaluate(Input{History: h, Policy: c.policy, Current: memory.Size{Request: 500 * mib}, Now: now})
			limit := 882 * mib
			if c.policy.DecreaseNever { // it has none
				limit = 0
			}
			if got.Size.Limit != limit || got.Size.Request < c.want-4*mib || got.Size.Request > c.want+4*mib {
				t.Errorf("got %v, want limit %s and a request near %s", got.Size, limit.OrNone(), c.want)
			}
		})
	}
}

func TestARequestAloneMayChange(t *testing.T) {
	h := history.New()
	now := feed(h, 9*day, 240*mib, flat(200*mib))
	got := Evaluate(Input{Policy: defaults, History: h, Current: sizeOf(64*mib, 240*mib), Now: now})
	want := memory.Size{Request: 210 * mib, Limit: 240 * mib}
	if got.Decision != Increase || got.Size.Limit != want.Limit ||
		!within(want.Request, got.Size.Request, 5) {
		t.Errorf("got %s %v, want Raise %v", got.Decision, got.Size, want)
	}
}

func TestPageCacheIsNotDemand(t *testing.T) {
	h := history.New()
	var now time.Time
	for since := time.Duration(0); since <= 9*day; since += 5 * time.Minute {
		s := sample("pod-0", start.Add(since), 100*mib)
		s.WorkingSet = 3 * gib
		h.Add(s, 4*gib)
		now = s.Time
	}
	got := Evaluate(Input{Policy: defaults, History: h, Current: sizeOf(4*gib, 4*gib), Now: now})
	if got.Size.Limit > 150*mib || !says(got, "peak working set 3Gi", "page cache") {
		t.Errorf(
			"limit %s, want at most 150Mi and the page cache named:\n%s", got.Size.Limit, strings.Join(got.Reasons, "\n"),
		)
	}
}

// TestSharedMemoryIsHeld is a PostgreSQL-like pod: 21Mi RSS, 73Mi in /dev/shm, a template of 256Mi, 26 hours. It got
// 58Mi and was killed three times.
func TestSharedMemoryIsHeld(t *testing.T) {
	h := history.New()
	var now time.Time
	for since := time.Duration(0); since <= 26*time.Hour; since += time.Minute {
		s := sample("db-0", start.Add(since), 21*mib)
		s.WorkingSet = 94 * mib
		h.Add(s.WithDemand(94*mib), 256*mib)
		now = s.Time
	}
	got := Evaluate(Input{Policy: defaults, History: h, Current: sizeOf(256*mib, 256*mib), InUse: 94 * mib, Now: now})
	if got.Decision != Decrease || got.Size.Limit < (94*mib).Percent(115) || got.Size.Request < 94*mib ||
		got.Evidence.PeakDemand.MiB() != 94 || !says(got, "peak demand 94Mi") ||
		!says(got, "peak RSS 21Mi", "shared memory") {
		t.Errorf("%s, evidence %+v, want demand of 94Mi and its headroom held:\n%s", got.Size, got.Evidence,
			strings.Join(got.Reasons, "\n"))
	}
}

func TestALimitHoldsWhatMemoryBackedVolumesMayHold(t *testing.T) {
	h := history.New()
	now := feed(h, 9*day, gib, flat(50*mib))
	for volumes, want := range map[memory.Bytes]memory.Bytes{0: 59 * mib, 100 * mib: 150 * mib, 4 * gib: gib} {
		holds := with(func(p *Policy) { p.VolumeSizeLimits = volumes })
		got := Evaluate(Input{Policy: holds, History: h, Current: sizeOf(gib, gib), Now: now})
		if got.Size.Limit != want || volumes > 0 && !says(got, "sizeLimit", volumes.String()) {
			t.Errorf("with %s of volumes the limit is %s, want %s:\n%s", volumes, got.Size.Limit, want,
				strings.Join(got.Reasons, "\n"))
		}
	}
}

// TestAnEstimateLowersNothing: shared memory is unknown where cAdvisor's counters cannot be read, swap and page cache
// where only working sets are.
func TestAnEstimateLowersNothing(t *testing.T) {
	for name, test := range map[string]struct {
		inexact func(*memory.Sample)
		every   time.Duration // of the samples, one is so
		words   string
	}{
		"RSS only":                    {func(s *memory.Sample) { s.Exact = false }, time.Minute, "at least 21Mi"},
		"RSS only, once within a day": {func(s *memory.Sample) { s.Exact = false }, 20 * time.Hour, "at least 21Mi"},
		"working set only": {
			func(s *memory.Sample) { s.Exact, s.HasRSS, s.RSS = false, false, 0 }, time.Minute, "at most 94Mi",
		},
		"working set only, now for an hour": {
			func(s *memory.Sample) { s.Exact, s.HasRSS, s.RSS = false, false, 0 }, 20 * time.Hour, "at most 94Mi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := history.New()
			var now time.Time
			for since := time.Duration(0); since <= 30*time.Hour; since += time.Minute {
				s := sample("db-0", start.Add(since), 21*mib)
				s.WorkingSet = 94 * mib
				if since%test.every == 0 {
					test.inexact(&s)
				}
				h.Add(s, 256*mib)
				now = s.Time
			}
			in := Input{Policy: defaults, History: h, Current: sizeOf(200*mib, 256*mib), InUse: 21 * mib, Now: now}
			got := Evaluate(in)
			if got.Decision != Keep || !says(got, "peak demand "+test.words) || !says(got, "limit stays at 256Mi", "estimate") {
				t.Errorf("%s to %s, want Keep:\n%s", got.Decision, got.Size, strings.Join(got.Reasons, "\n"))
			}
			in.Current.Limit = 0
			if got = Evaluate(in); got.Size.Limit < (94 * mib).Percent(115) {
				t.Errorf("first limit %s, want the working set of 94Mi held", got.Size.Limit)
			}
			in.Current = sizeOf(16*mib, 16*mib)
			if got = Evaluate(in); got.Decision != Increase || got.Size.Limit < 21*mib {
				t.Errorf("%s to %s, want a raise", got.Decision, got.Size)
			}
		})
	}
}

// TestARequestFollowsDemandWithoutALimit: a container without a limit kept a request of 16Mi with 56Mi in use.
func TestARequestFollowsDemandWithoutALimit(t *testing.T) {
	for name, span := range map[string]time.Duration{"10 minutes": 10 * time.Minute, "a day": day} {
		h := history.New()
		now := feed(h, span, 0, flat(56*mib))
		got := Evaluate(Input{
			Policy: defaults, History: h, Current: sizeOf(16*mib, 0), InUse: 56 * mib, InUseSeen: now, Now: now,
		})
		if got.Decision != Increase || !got.UseAboveRequest || got.Size.Request < 56*mib ||
			span < time.Hour && got.Size.Limit != 0 {
			t.Errorf("%s: %s %s, want a request of at least 56Mi at once", name, got.Decision, got.Size)
		}
	}
}

func TestEqualInputGivesEqualOutput(t *testing.T) {
	h := history.New()
	now := feed(
		h, 3*day, gib, func(since time.Duration) memory.Bytes { return 100*mib + memory.Bytes(since.Minutes())*10_000 },
	)
	in := Input{
		Policy:  defaults,
		History: h, Kills: []memory.OOMKill{kill(now.Add(-time.Minute), 256*mib)}, Current: sizeOf(256*mib, 256*mib),
		Now: now,
	}
	if diff := cmp.Diff(Evaluate(in), Evaluate(in)); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkEvaluate100kContainers(b *testing.B) {
	const n = 100_000
	histories := make([]history.Container, 200) // the shapes repeat; the cost of a pass does not depend on which repeat
	var now time.Time
	for i := range histories {
		base := memory.Bytes(40+i*10) * mib
		now = feed(&histories[i], 10*day, 4*gib, func(since time.Duration) memory.Bytes {
			return base + base.Percent(int32(since/time.Hour%24)*4)
		})
	}
	kills := []memory.OOMKill{kill(now.Add(-50*time.Hour), 128*mib), kill(now.Add(-49*time.Hour), 256*mib)}
	b.ReportAllocs()
	for b.Loop() {
		for i := range n {
			in := Input{Policy: defaults, History: &histories[i%len(histories)], Current: sizeOf(256*mib, 512*mib), Now: now}
			if i%20 == 0 {
				in.Kills = kills
			}
			if r := Evaluate(in); r.Decision == Hold {
				b.Fatal(r.Summary)
			}
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/pass")
}

func ExampleEvaluate() {
	h := history.New()
	now := feed(h, 9*day, gib, flat(412*mib))
	r := Evaluate(Input{Policy: defaults, History: h, Current: memory.Size{Request: gib, Limit: gib}, Now: now})
	fmt.Println(r.Summary)
	for _, reason := range r.Reasons[:1] {
		fmt.Println("-", reason)
	}
	// Output:
	// Decrease limit 1Gi to 460Mi, request 1Gi to 437Mi: peak demand 412Mi over 9 days
	// - peak demand 412Mi over 9 days (1 replica, 3k samples)
}

// TestWhatSomeUseIsNotWhatAllNeed: nothing is lowered while a replica is not measured.
func TestWhatSomeUseIsNotWhatAllNeed(t *testing.T) {
	h := history.New()
	size := func(request, limit memory.Bytes) memory.Size { return sizeOf(request*mib, limit*mib) }
	end := feed(h, 3*24*time.Hour, 512*mib, flat(60*mib))
	for name, tc := range map[string]struct{ current, last, want memory.Size }{
		"it keeps what it has":                {current: size(256, 512), want: size(256, 512)},
		"or what was recommended":             {current: size(256, 512), last: size(128, 256), want: size(128, 256)},
		"but no more than it has":             {current: size(256, 512), last: size(300, 600), want: size(256, 512)},
		"a first limit is a lower one":        {current: size(256, 0)},
		"unless it was recommended before it": {current: size(256, 0), last: size(128, 256), want: size(128, 256)},
	} {
		got := Evaluate(Input{
			History: h, Replicas: 3, Current: tc.current, Last: tc.last, Policy: defaults, Now: end,
			UnmeasuredContainer: "usage of pod web-3 was not read",
		})
		if got.Size != tc.want || !says(got, "usage of pod web-3 was not read") {
			t.Errorf("%s: %s, want %s: %q", name, got.Size, tc.want, got.Reasons)
		}
	}
}
