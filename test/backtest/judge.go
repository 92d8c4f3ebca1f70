// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// prices of a kill in GiB-days at which total costs are told: from one with a retry to one that somebody is woken up
// for.
var prices = []float64{1, 2, 5, 10, 20, 50}

// Verdict is memfit beside VPA on the reporting half of one set.
type Verdict struct {
	Set    string
	trades map[string]trade // by policy
	mine   curve            // over memfit's postures
	vpa    curve            // over VPA's flags
}

// Judge compares the outcomes of all policies on one set.
func Judge(set string, outcomes []Outcome) Verdict {
	trades := map[string]trade{}
	for _, o := range outcomes {
		trades[o.Policy] = o.Trade()
	}
	return judge(set, trades)
}

func judge(set string, trades map[string]trade) Verdict {
	v := Verdict{Set: set, trades: trades}
	var mine, vpa []trade
	for policy, t := range trades {
		switch {
		case strings.HasPrefix(policy, "memfit"):
			mine = append(mine, t)
		case strings.HasPrefix(policy, "vpa"):
			vpa = append(vpa, t)
		}
	}
	v.mine, v.vpa = newCurve(mine), newCurve(vpa)
	return v
}

// Held are the claims that are true of the set, as held.txt has them.
//
//   - postures: memfit's curve is below VPA's wherever memfit has one, from its leanest posture to its widest
//   - curve: it is below at any greater slack as well
//   - cost P: at a price of P GiB-days per kill, the best posture costs less than every VPA variant
//   - balanced P: so does the default posture alone
func (v Verdict) Held() (claims []string) {
	widest := v.mine[len(v.mine)-1].slack
	if v.mine.below(v.vpa, widest) {
		claims = append(claims, "postures")
	}
	if v.mine.below(v.vpa, max(widest, v.vpa[len(v.vpa)-1].slack)) {
		claims = append(claims, "curve")
	}
	for _, price := range prices {
		best := v.vpa.cheapest(price).cost(price)
		if v.mine.cheapest(price).cost(price) < best {
			claims = append(claims, costClaim(price))
		}
		if v.trades["memfit"].cost(price) < best {
			claims = append(claims, balancedClaim(price))
		}
	}
	return claims
}

// Print writes the lines that scripts read.
func (v Verdict) Print(w io.Writer) {
	within, beyond := v.mine.area(v.vpa)
	fmt.Fprintf(
		w, "set=%s area=%.1f area_beyond=%.1f held=%s\n", v.Set, within, beyond,
		strings.ReplaceAll(strings.Join(v.Held(), ","), " ", "@"),
	)
	for _, price := range prices {
		cheapest := v.vpa.cheapest(price)
		for _, policy := range slices.Sorted(maps.Keys(v.trades)) {
			note := ""
			if strings.HasPrefix(policy, "vpa") {
				if v.trades[policy] == cheapest {
					note = " cheapest=vpa"
				} else if policy != vpaFlagDefaults.String() {
					continue
				}
			}
			fmt.Fprintf(w, "set=%s price=%g policy=%s cost=%.2f%s\n", v.Set, price, policy, v.trades[policy].cost(price), note)
		}
	}
}

// held is what was true when held.txt was last reviewed: claims by set.
type held map[string][]string

// readHeld reads lines of a set and its claim; what follows a # is for people.
func readHeld(path string) (held, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := held{}
	for in := bufio.NewScanner(f); in.Scan(); {
		text, _, _ := strings.Cut(in.Text(), "#")
		set, claims, ok := strings.Cut(strings.TrimSpace(text), ":")
		if !ok && text != "" && set != "" {
			return nil, fmt.Errorf("%s: %q is not SET: CLAIM, CLAIM", path, text)
		}
		for claim := range strings.SplitSeq(claims, ",") {
			if claim = strings.TrimSpace(claim); claim != "" {
				all[set] = append(all[set], claim)
			}
		}
	}
	return all, nil
}

// lost are the claims that were held and are no longer true. What is not in the file is reported and not judged.
func (h held) lost(v Verdict) (lost []string) {
	now := v.Held()
	for _, claim := range h[v.Set] {
		if !slices.Contains(now, claim) {
			lost = append(lost, v.Set+": "+claim)
		}
	}
	return lost
}
