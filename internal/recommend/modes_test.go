// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// runsOf are the peaks of runs in MiB.
func runsOf(mebibytes ...int) (peaks []memory.Bytes) {
	for _, m := range mebibytes {
		peaks = append(peaks, memory.Bytes(m)*mib)
	}
	return peaks
}

func TestRunsOfTwoKinds(t *testing.T) {
	for name, c := range map[string]struct {
		runs []memory.Bytes
		want string
	}{
		"two kinds": {
			runsOf(100, 480, 104, 110, 96, 470, 101, 99, 108, 475, 103, 97), "9 of 12 runs used at most 110Mi, 3 up to 480Mi",
		},
		"mostly large": {
			runsOf(400, 60, 410, 420, 64, 415, 402, 408), "2 of 8 runs used at most 64Mi, 6 up to 420Mi",
		},
		"one exception":            {runsOf(100, 101, 102, 103, 480, 104, 105, 106, 107), ""},
		"too few":                  {runsOf(100, 101, 102, 480, 481, 482, 483), ""},
		"spread evenly":            {runsOf(100, 140, 190, 260, 350, 480, 650, 900, 1200), ""},
		"one kind":                 {runsOf(100, 101, 102, 103, 104, 105, 106, 140, 141), ""},
		"each kind is spread wide": {runsOf(10, 20, 40, 80, 160, 480, 960, 1920, 3840), ""},
		"none":                     {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(c.runs)
			if got := twoKinds(c.runs); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if !slices.Equal(before, c.runs) {
				t.Error("the input was reordered")
			}
		})
	}
}

// TestTheReasonNamesTheDistribution: the cost model alone determines the size of a task whose need varies by input, and
// its reason has the distribution. A large run every day is held; one three weeks ago is not.
func TestTheReasonNamesTheDistribution(t *testing.T) {
	for name, c := range map[string]struct {
		large   func(day int) bool
		runs    []memory.Bytes
		reasons []string
		holds   bool
	}{
		"a large run every day": {
			func(int) bool { return true }, runsOf(100, 100, 100, 480, 100, 100, 100, 480),
			[]string{"6 of 8 runs used at most 100Mi, 2 up to 480Mi", "above the last day's peak of 480Mi"}, true,
		},
		"two large runs three weeks ago": {
			func(day int) bool { return day == 4 || day == 5 }, runsOf(480, 480, 100, 100, 100, 100, 100, 100),
			[]string{
				"6 of 8 runs used at most 100Mi, 2 up to 480Mi",
				"the peak of 480Mi is not covered: that costs more than the kills it prevents",
			}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := history.New()
			now := feed(h, 25*day, gib, func(since time.Duration) memory.Bytes {
				if at := since % day; c.large(int(since/day)) && at >= 12*time.Hour && at < 13*time.Hour {
					return 480 * mib
				}
				return 100 * mib
			})
			in := Input{History: h, Policy: posed(Frugal), Current: sizeOf(gib, gib), Runs: c.runs, Now: now}
			got := Evaluate(in)
			if c.holds != (got.Size.Limit >= 480*mib) {
				t.Errorf("limit %s, want at least 480Mi: %t", got.Size.Limit, c.holds)
			}
			for _, want := range c.reasons {
				if !says(got, want) {
					t.Errorf("no reason has %q:\n%s", want, strings.Join(got.Reasons, "\n"))
				}
			}
			in.Runs = nil
			if without := Evaluate(in); without.Size != got.Size {
				t.Errorf("the description of runs moved the size from %s to %s", without.Size, got.Size)
			}
		})
	}
}
