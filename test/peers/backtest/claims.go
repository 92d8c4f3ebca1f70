// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
)

// A claim about a small set may hang on one kill of one series. So each is asked again of sets of as many series drawn
// from this one, with repeats: a claim that most of them do not bear out says little of other containers of this kind,
// whether it holds or not.

// claimResamples tell a share to within three percentage points.
const claimResamples = 1000

// Support is how far a set bears a claim out.
type Support struct {
	Claim string
	// Held is whether it is true of the set as it is.
	Held bool
	// Share of the resamples of which it is true.
	Share float64
}

// allClaims are those that [Verdict.Held] may name.
func allClaims() []string {
	claims := []string{"postures", "curve", "settings", "settings curve"}
	for _, price := range prices {
		claims = append(claims, costClaim(price), balancedClaim(price))
	}
	return claims
}

func costClaim(price float64) string     { return fmt.Sprintf("cost %g", price) }
func balancedClaim(price float64) string { return fmt.Sprintf("balanced %g", price) }

// Supports asks each claim of the outcomes and of their resamples. All outcomes have the same series in the same order.
// Equal outcomes give equal shares.
func Supports(outcomes []Outcome) (all []Support) {
	each := map[string][]trade{} // by policy and series
	series := 0
	for _, o := range outcomes {
		for _, r := range o.Results {
			each[o.Policy] = append(each[o.Policy], Outcome{Results: []Result{r}}.Trade())
		}
		series = len(o.Results)
	}
	count := map[string]int{}
	r := rand.New(rand.NewPCG(1, 1))
	times := make([]float64, series)
	for range claimResamples {
		clear(times)
		for range series {
			times[r.IntN(series)]++
		}
		trades := map[string]trade{}
		for policy, parts := range each {
			var sum trade
			for i, t := range parts {
				sum.slack += times[i] * t.slack
				sum.kills += times[i] * t.kills
			}
			trades[policy] = sum
		}
		for _, claim := range judge("", trades).Held() {
			count[claim]++
		}
	}
	held := Judge("", outcomes).Held()
	for _, claim := range allClaims() {
		all = append(all, Support{claim, slices.Contains(held, claim), float64(count[claim]) / claimResamples})
	}
	return all
}

// Print writes the line that scripts read.
func (s Support) Print(w io.Writer, set string) {
	held := "no"
	if s.Held {
		held = "yes"
	}
	claim := strings.ReplaceAll(s.Claim, " ", "@")
	fmt.Fprintf(w, "set=%s claim=%s held=%s resamples=%.0f%%\n", set, claim, held, 100*s.Share)
}
