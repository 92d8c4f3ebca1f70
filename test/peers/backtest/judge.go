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
var prices = []float64{1, 2, 5, 7, 10, 20, 50}

// Verdict is memfit beside VPA on the reporting half of one set.
type Verdict struct {
	Set    string
	trades map[string]trade // by policy
	mine   curve            // over memfit's postures
	priced curve            // over memfit's postures and the amounts that an owner may write as one
	wider  curve            // over memfit's settings: postures, headroom and least limit
	vpa    curve            // over VPA's flags
}

// Judge compares the outcomes of all policies on one set.
func Judge(set string, outcomes []Outcome) Verdict {
	v := Verdict{Set: set, trades: map[string]trade{}}
	for _, o := range outcomes {
		v.trades[o.Policy] = o.Trade()
	}
	var mine, amounts, wider, vpa []trade
	for policy, t := range v.trades {
		switch {
		case strings.HasPrefix(policy, "memfit"):
			mine, wider = append(mine, t), append(wider, t)
		case strings.HasPrefix(policy, pricePrefix):
			amounts = append(amounts, t)
		case strings.HasPrefix(policy, settingsPrefix):
			wider = append(wider, t)
		case strings.HasPrefix(policy, "vpa"):
			vpa = append(vpa, t)
		}
	}
	v.mine, v.wider, v.vpa = newCurve(mine), newCurve(wider), newCurve(vpa)
	v.priced = newCurve(slices.Concat(mine, amounts))
	return v
}

// Held are the claims that are true of the set, as held.txt has them.
//
//   - postures: memfit's curve is below VPA's wherever memfit has one, from its leanest posture to its widest
//   - curve: it is below at any greater slack as well
//   - settings, settings curve: so is the curve over memfit's settings, like for like with VPA's flags
//   - cost P: at a price of P GiB-days per kill, the best posture costs less than every VPA variant
//   - balanced P: so does the default posture alone
func (v Verdict) Held() (claims []string) {
	claim := func(name string, held bool) {
		if held {
			claims = append(claims, name)
		}
	}
	claim("postures", v.mine.below(v.vpa, v.mine.widest()))
	claim("curve", v.mine.below(v.vpa, max(v.mine.widest(), v.vpa.widest())))
	claim("settings", v.wider.below(v.vpa, v.wider.widest()))
	claim("settings curve", v.wider.below(v.vpa, max(v.wider.widest(), v.vpa.widest())))
	for _, price := range prices {
		best := v.vpa.cheapest(price).cost(price)
		claim(fmt.Sprintf("cost %g", price), v.mine.cheapest(price).cost(price) < best)
		claim(fmt.Sprintf("balanced %g", price), v.trades["memfit"].cost(price) < best)
	}
	return claims
}

// PrintCurves writes how the curves of memfit over its postures, and over its settings, lie to VPA's on one half of the
// set: whether below it in the range of their own, and at any slack; and at which prices they are cheaper.
func (v Verdict) PrintCurves(w io.Writer, half string) {
	for _, c := range []struct {
		over string
		mine curve
	}{{"postures", v.mine}, {"settings", v.wider}} {
		var cheaper []string
		for _, price := range prices {
			if c.mine.cheapest(price).cost(price) < v.vpa.cheapest(price).cost(price) {
				cheaper = append(cheaper, fmt.Sprintf("%g", price))
			}
		}
		fmt.Fprintf(w, "set=%s half=%s over=%s below_in_range=%t below=%t cheaper_at=%s curve=%s vpa=%s\n",
			v.Set, half, c.over, c.mine.below(v.vpa, c.mine.widest()),
			c.mine.below(v.vpa, max(c.mine.widest(), v.vpa.widest())), strings.Join(cheaper, ","), c.mine, v.vpa)
	}
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
			} else if strings.HasPrefix(policy, settingsPrefix) ||
				strings.HasPrefix(policy, pricePrefix) && policy != pricedName(price) {
				continue
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
