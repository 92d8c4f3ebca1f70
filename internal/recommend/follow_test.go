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

// rounds lets memfit size a runtime again and again, two days at a time, applying the result. use gives the demand
// under a limit.
func rounds(
	n int, first memory.Bytes, traits Traits, use func(limit memory.Bytes, step int) memory.Bytes,
) (limits []memory.Bytes, last Recommendation) {
	h, limit, now := history.New(), first, start
	for range n {
		for step := range 2 * 24 * 3 {
			now = now.Add(20 * time.Minute)
			h.Add(sample("pod-0", now, use(limit, step)), limit)
		}
		last = Evaluate(Input{Policy: defaults, History: h, Traits: traits, Current: sizeOf(limit, limit), Now: now})
		if last.Decision == Increase || last.Decision == Decrease {
			limit = last.Size.Limit
		}
		limits = append(limits, limit)
	}
	return limits, last
}

func TestNoRatchetForRuntimesThatFillTheirLimit(t *testing.T) {
	type patternOf func(share int32) func(memory.Bytes, int) memory.Bytes
	for name, pattern := range map[string]patternOf{
		"flat at its cap": func(share int32) func(memory.Bytes, int) memory.Bytes {
			return func(limit memory.Bytes, _ int) memory.Bytes { return limit.Percent(share) }
		},
		"sawtooth below its cap": func(share int32) func(memory.Bytes, int) memory.Bytes {
			return func(limit memory.Bytes, step int) memory.Bytes {
				return limit.Percent(share * int32(60+step%9*5) / 100)
			}
		},
	} {
		for _, heap := range []int32{0, 25, 75, 90} {
			for share := int32(50); share <= 99; share++ {
				limits, last := rounds(50, gib, Traits{Name: "JVM 17", FollowsLimit: true, HeapPercent: heap}, pattern(share))
				settled := limits[10]
				for i, limit := range limits {
					if limit < 512*mib || limit > 2*gib || i > 10 && limit != settled {
						t.Fatalf(
							"%s, fill %d %%, heap %d %%: limits %v; last: %s\n%s", name, share, heap, limits[:i+1], last.Summary,
							strings.Join(last.Reasons, "\n"),
						)
					}
				}
			}
		}
	}
}

func TestTheLiveSetIsTheDemandOfARuntimeThatFillsItsHeap(t *testing.T) {
	// A JVM with 75 % heap and 300Mi alive: it collects at its cap, whatever the limit is.
	collects := func(limit memory.Bytes, step int) memory.Bytes {
		cap, live := limit.Percent(75), 300*mib
		return max(live, live.Plus(cap.Minus(live).Percent(int32(step%7*16))))
	}
	traits := Traits{Name: "JVM 17", FollowsLimit: true, HeapPercent: 75}
	_, first := rounds(1, 4*gib, traits, collects)
	if !says(first, "JVM 17", "not demand", "live set 300Mi") {
		t.Errorf("reasons do not name the live set:\n%s", strings.Join(first.Reasons, "\n"))
	}
	limits, last := rounds(12, 4*gib, traits, collects)
	got := limits[len(limits)-1]
	if got < 500*mib || got > 800*mib {
		t.Errorf("limits %v, want about 600Mi (300Mi x 150 %% / 75 %%):\n%s", limits, strings.Join(last.Reasons, "\n"))
	}
}

func TestAHeapThatIsNotFilledIsSizedByItsPeak(t *testing.T) {
	limits, last := rounds(
		8, 4*gib, Traits{Name: "JVM 17", FollowsLimit: true, HeapPercent: 25},
		func(memory.Bytes, int) memory.Bytes { return 200 * mib },
	)
	if got := limits[len(limits)-1]; got < 700*mib || got > 900*mib {
		t.Errorf("limits %v, want 800Mi so that 200Mi fit in 25 %%:\n%s", limits, strings.Join(last.Reasons, "\n"))
	}
}

// TestPeaksThatMovedWithTheLimitMoveNone: whether the limit moved them or the load is unknown.
func TestPeaksThatMovedWithTheLimitMoveNone(t *testing.T) {
	h := history.New()
	now := feed(h, 26*time.Hour, 256*mib, flat(158*mib))
	evaluate := func() Recommendation {
		return Evaluate(Input{
			Policy:  defaults,
			History: h, Traits: Traits{Name: "Go", FollowsLimit: true, HeapPercent: 90}, Current: sizeOf(64*mib, 128*mib),
			Now: now,
		})
	}
	for elapsed := time.Duration(0); elapsed <= 26*time.Hour; elapsed += 20 * time.Minute {
		now = now.Add(20 * time.Minute)
		h.Add(sample("pod-1", now, 2*mib), 128*mib)
		switch got := evaluate(); {
		case got.Size.Limit != 128*mib:
			t.Fatalf("after %s: %s, want the limit to stay at 128Mi", elapsed, got.Summary)
		case !says(got, "peaks went from 158Mi to 2Mi since the limit went from 256Mi to 128Mi"):
			t.Fatalf("after %s: %s", elapsed, strings.Join(got.Reasons, "\n"))
		}
	}
}

func TestAKillRaisesARuntimeThatFollows(t *testing.T) {
	h := history.New()
	now := feed(h, 9*day, 512*mib, flat(480*mib))
	got := Evaluate(Input{
		Policy:  defaults,
		History: h, Kills: []memory.OOMKill{kill(now, 512*mib)}, Traits: Traits{FollowsLimit: true, HeapPercent: 75},
		Current: sizeOf(512*mib, 512*mib), Now: now.Add(time.Minute),
	})
	if got.Decision != Increase || got.Size.Limit < 768*mib || got.Size.Limit > gib {
		t.Errorf("got %s, want a raise from 512Mi to between 768Mi and 1Gi", got.Summary)
	}
}

// A young runtime is evaluated about every hour, and gets headroom for its next step, which must not drive itself up.
func TestNoRatchetInTheFirstHours(t *testing.T) {
	for _, first := range []memory.Bytes{96 * mib, 300 * mib, gib} {
		for _, heap := range []int32{0, 25, 75, 90} {
			for share := int32(50); share <= 99; share++ {
				h, limit, now := history.New(), first, start
				for range 48 {
					for step := range 6 {
						now = now.Add(10 * time.Minute)
						h.Add(sample("pod-0", now, limit.Percent(share*int32(80+step*4)/100)), limit)
					}
					got := Evaluate(
						Input{
							Policy: defaults, History: h, Traits: Traits{FollowsLimit: true, HeapPercent: heap},
							Current: sizeOf(limit, limit), Now: now,
						},
					)
					if got.Decision == Increase || got.Decision == Decrease {
						limit = got.Size.Limit
					}
					if limit > max(2*first, 256*mib) {
						t.Fatalf(
							"from %s, fill %d %%, heap %d %%: at %s after %s: %s\n%s", first, share, heap, limit, now.Sub(start),
							got.Summary, strings.Join(got.Reasons, "\n"),
						)
					}
				}
			}
		}
	}
}

// TestAHeapThatMayFollow: where it is unknown whether the heap cap follows the limit, neither assumption does harm. A
// limit is lowered only as far as a heap of its peak fits into the share, and use near the share moves no limit.
func TestAHeapThatMayFollow(t *testing.T) {
	traits := Traits{Name: "Java", MayFollow: true, HeapPercent: 25}
	for name, c := range map[string]struct {
		use  func(memory.Bytes, int) memory.Bytes
		want [2]memory.Bytes // of the last limit
		says string
	}{
		"far below its share": {
			func(memory.Bytes, int) memory.Bytes { return 200 * mib }, [2]memory.Bytes{780 * mib, 820 * mib},
			"the limit stays at 800Mi",
		},
		"a fixed heap, above the share": {
			func(_ memory.Bytes, step int) memory.Bytes { return 1500*mib + memory.Bytes(step%9)*100*mib },
			[2]memory.Bytes{4 * gib, 4 * gib}, "memfit neither set nor read its cap",
		},
		// A live set of 60Mi below a fixed heap: by live set and share the limit would be 360Mi, and the heap takes 700Mi.
		"a fixed heap with little alive": {
			func(_ memory.Bytes, step int) memory.Bytes { return 60*mib + memory.Bytes(step%9)*130*mib },
			[2]memory.Bytes{4 * gib, 4 * gib}, "the limit stays at 4Gi",
		},
	} {
		limits, last := rounds(12, 4*gib, traits, c.use)
		if got := limits[len(limits)-1]; got < c.want[0] || got > c.want[1] || !says(last, c.says) {
			t.Errorf("%s: limits %v, want the last within %v\n%s", name, limits, c.want, strings.Join(last.Reasons, "\n"))
		}
	}
	known := traits
	known.FollowsLimit, known.MayFollow = true, false
	limits, _ := rounds(12, 4*gib, known, func(_ memory.Bytes, step int) memory.Bytes {
		return 60*mib + memory.Bytes(step%9)*130*mib
	})
	if got := limits[len(limits)-1]; got >= 4*gib {
		t.Errorf("known to follow: limits %v, want it sized by its live set", limits)
	}
}

// TestAHeapAbortOfUnknownCapRaisesNoLimit: at each abort of a fixed heap the limit would go up, to its maximum.
func TestAHeapAbortOfUnknownCapRaisesNoLimit(t *testing.T) {
	h := history.New()
	now := feed(h, 9*day, gib, flat(600*mib))
	k := kill(now, gib)
	k.Kind = memory.OOMHeapAbort
	got := Evaluate(Input{
		Policy: defaults, History: h, Kills: []memory.OOMKill{k}, Current: sizeOf(gib, gib), Now: now.Add(time.Minute),
		Traits: Traits{Name: "Java", MayFollow: true, HeapPercent: 25},
	})
	if got.Size.Limit > gib || !says(got, "1 heap abort not counted") {
		t.Errorf("got %s\n%s", got.Summary, strings.Join(got.Reasons, "\n"))
	}
}

// TestWhatIsReservedIsNotForTheHeap: the heap's share is of the rest, so that the limit for a heap is larger by the
// reserve, whether or not others hold it now.
func TestWhatIsReservedIsNotForTheHeap(t *testing.T) {
	sized := func(n int, reserve memory.Bytes) (memory.Bytes, string) {
		limits, last := rounds(
			n, 4*gib, Traits{Name: "Node.js", FollowsLimit: true, HeapPercent: 75, Reserve: reserve},
			func(limit memory.Bytes, step int) memory.Bytes {
				heap := limit.Minus(reserve).Percent(75)
				return 400*mib + (heap-400*mib)*memory.Bytes(step%9)/8 // collected down to 400Mi
			},
		)
		return limits[len(limits)-1], strings.Join(last.Reasons, "\n")
	}
	without, _ := sized(20, 0)
	with, why := sized(20, gib)
	if with < without+gib-64*mib || with > without+gib+64*mib {
		t.Errorf("the limit is %s with a reserve of 1Gi and %s without:\n%s", with, without, why)
	}
	if _, why := sized(1, gib); !strings.Contains(why, "heap 75 % of the limit less tuning.reserve 1Gi") {
		t.Errorf("the reasons do not name the reserve:\n%s", why)
	}
}
