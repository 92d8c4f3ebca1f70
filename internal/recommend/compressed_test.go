// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/test/compress"
)

const day = 24 * time.Hour

// story is what a workload did: use in samples of one interval of evidence, a kill or none, and its size.
type story struct {
	every   period.Evidence
	use     []memory.Bytes
	killed  int          // index of the sample after which it was killed; 0: never
	last    memory.Bytes // the limit it was killed at with the last sample; 0: it was not
	traits  Traits
	policy  Policy
	current memory.Size
}

// tell returns a random story of one hour to 40 days.
func tell(r *rand.Rand) story {
	s := story{
		every:   period.Evidence(1+r.IntN(4)) * 12 * period.Minute,
		current: memory.Size{Limit: memory.Bytes(128+r.IntN(1024)) * mib, Request: memory.Bytes(16+r.IntN(100)) * mib},
	}
	span := period.Hour + period.Evidence(r.Int64N(int64(3*period.Day)))
	if r.IntN(3) == 0 {
		span = period.Evidence(r.Int64N(int64(40 * period.Day)))
	}
	base, burst := 20+r.IntN(300), 1+r.IntN(200)
	for i := range int(span/s.every) + 1 {
		use := base + r.IntN(1+base/10)
		if r.IntN(50) == 0 {
			use += burst
		}
		if r.IntN(400) == 0 {
			base = 20 + r.IntN(300)
		}
		s.use = append(s.use, memory.Bytes(use)*mib)
		if r.IntN(300) == 0 {
			s.killed = i
		}
	}
	s.traits.FollowsLimit = r.IntN(4) == 0
	s.policy.KillPrice = []memory.Bytes{Frugal, Balanced, Cautious}[r.IntN(3)]
	return s
}

// evaluate plays the story with the factor of evidence that is set, and asks a minute of evidence after its end.
func (s story) evaluate() Recommendation {
	h, now := history.New(), start
	ref := memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: types.UID("web-1"), Container: "web"}
	in := Input{History: h, Traits: s.traits, Policy: s.policy, Current: s.current, InUse: s.use[len(s.use)-1]}
	for i, use := range s.use {
		now = start.Add((period.Evidence(i) * s.every).Duration())
		h.Add(memory.Sample{
			Container: ref, Time: now, Started: start, RSS: use, HasRSS: true, WorkingSet: use, Exact: true,
		}, s.current.Limit)
		if i > 0 && i == s.killed {
			in.Kills = []memory.OOMKill{{
				Container: ref, Time: now, Kind: memory.OOMMainProcess, Limit: s.current.Limit, Peak: use, Uptime: time.Hour,
			}}
		}
	}
	if s.last > 0 {
		in.Kills = append(in.Kills, memory.OOMKill{
			Container: ref, Time: now, Kind: memory.OOMMainProcess, Limit: s.last, Peak: s.last, Proven: true, Uptime: time.Hour,
		})
	}
	in.Now, in.InUseSeen = now.Add(period.Minute.Duration()), now
	return Evaluate(in)
}

// The same samples closer together give the same decision: a lab sees what production does, only sooner.
func TestCompressedEvidenceDecidesTheSame(t *testing.T) {
	for seed := range uint64(400) {
		s := tell(rand.New(rand.NewPCG(seed, 31)))
		want := s.evaluate()
		for _, factor := range []int{60, 144, 360} {
			t.Run("", func(t *testing.T) {
				compress.By(t, factor)
				got := s.evaluate()
				if got.Size != want.Size || got.Decision != want.Decision || got.Confidence != want.Confidence ||
					got.Urgent != want.Urgent {
					t.Errorf("seed %d, factor %d: %s %v, want %s %v\n%s\nwant\n%s", seed, factor, got.Decision,
						got.Size, want.Decision, want.Size, strings.Join(got.Reasons, "\n"), strings.Join(want.Reasons, "\n"))
				}
			})
		}
	}
}

// 26 hours of use lower a limit. Compressed by 144 they take eleven minutes, and the reasons say so.
func TestALimitIsLoweredWithinMinutesInALab(t *testing.T) {
	s := story{every: 12 * period.Minute, current: sizeOf(512*mib, 512*mib)}
	for range 26*5 + 1 {
		s.use = append(s.use, 60*mib)
	}
	plain := s.evaluate()
	compress.By(t, 144)
	got := s.evaluate()
	if got.Decision != Decrease || got.Size != plain.Size {
		t.Fatalf("%s to %v, want Decrease to %v", got.Decision, got.Size, plain.Size)
	}
	if got.Evidence.Window != 650*time.Second {
		t.Errorf("the evidence is %s long, want the real 10m50s", got.Evidence.Window)
	}
	if !strings.Contains(got.Summary, "over 10 min") || !strings.Contains(got.Reasons[0], "compressed by 144") ||
		!strings.Contains(got.Reasons[0], "takes 10m") {
		t.Errorf("summary %q, first reason %q: want the real time and the factor", got.Summary, got.Reasons[0])
	}
	if strings.Contains(strings.Join(plain.Reasons, "\n"), "compressed") {
		t.Errorf("without compression: %v", plain.Reasons)
	}
}
