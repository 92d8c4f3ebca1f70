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

// prices of a kill in GiB-days at which total costs are reported: from a kill with a retry to one that pages an
// operator.
var prices = []float64{1, 2, 5, 7, 10, 20, 50}

// Verdict compares memfit with VPA on the reporting half of one set.
type Verdict struct {
	Set      string
	trades   map[string]trade // by policy
	postures curve            // of memfit's postures
	priced   curve            // of memfit's postures and the amounts that an owner can specify instead
	settings curve            // of memfit's settings: posture, headroom and minimum limit
	vpa      curve            // of VPA's flags
}

// Judge compares the outcomes of all policies on one set.
func Judge(set string, outcomes []Outcome) Verdict {
	v := Verdict{Set: set, trades: map[string]trade{}}
	for _, o := range outcomes {
		v.trades[o.Policy] = o.Trade()
	}
	var named, amounts, settings, vpa []trade
	for policy, t := range v.trades {
		switch {
		case strings.HasPrefix(policy, "memfit"):
			named, settings = append(named, t), append(settings, t)
		case strings.HasPrefix(policy, pricePrefix):
			amounts = append(amounts, t)
		case strings.HasPrefix(policy, settingsPrefix):
			settings = append(settings, t)
		case strings.HasPrefix(policy, "vpa"):
			vpa = append(vpa, t)
		}
	}
	v.postures, v.settings, v.vpa = newCurve(named), newCurve(settings), newCurve(vpa)
	v.priced = newCurve(slices.Concat(named, amounts))
	return v
}

// Held returns the claims that hold for the set, as held.txt names them.
//
//   - postures: the curve of memfit's postures is below VPA's from the leanest posture to the widest
//   - curve: it is below VPA's at any greater slack as well
//   - settings, settings curve: the same for the curve of memfit's settings, which vary as VPA's flags do
//   - cost P: at a price of P GiB-days per kill, the cheapest posture costs less than every VPA variant
//   - balanced P: the default posture costs less than every VPA variant
func (v Verdict) Held() (claims []string) {
	claim := func(name string, held bool) {
		if held {
			claims = append(claims, name)
		}
	}
	claim("postures", v.postures.below(v.vpa, v.postures.widest()))
	claim("curve", v.postures.below(v.vpa, max(v.postures.widest(), v.vpa.widest())))
	claim("settings", v.settings.below(v.vpa, v.settings.widest()))
	claim("settings curve", v.settings.below(v.vpa, max(v.settings.widest(), v.vpa.widest())))
	for _, price := range prices {
		best := v.vpa.cheapest(price).cost(price)
		claim(fmt.Sprintf("cost %g", price), v.postures.cheapest(price).cost(price) < best)
		claim(fmt.Sprintf("balanced %g", price), v.trades["memfit"].cost(price) < best)
	}
	return claims
}

// PrintCurves compares the curves of memfit's postures and settings with VPA's on one half of the set: whether they are
// below VPA's in their own range and at any slack, and at which prices they are cheaper.
func (v Verdict) PrintCurves(w io.Writer, half string) {
	for _, c := range []struct {
		over  string
		curve curve
	}{{"postures", v.postures}, {"settings", v.settings}} {
		var cheaper []string
		for _, price := range prices {
			if c.curve.cheapest(price).cost(price) < v.vpa.cheapest(price).cost(price) {
				cheaper = append(cheaper, fmt.Sprintf("%g", price))
			}
		}
		fmt.Fprintf(w, "set=%s half=%s over=%s below_in_range=%t below=%t cheaper_at=%s curve=%s vpa=%s\n",
			v.Set, half, c.over, c.curve.below(v.vpa, c.curve.widest()),
			c.curve.below(v.vpa, max(c.curve.widest(), v.vpa.widest())), strings.Join(cheaper, ","), c.curve, v.vpa)
	}
}

// Print writes the lines that scripts read.
func (v Verdict) Print(w io.Writer) {
	within, beyond := v.postures.area(v.vpa)
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

// held are the claims that held when held.txt was last reviewed, by set.
type held map[string][]string

// readHeld reads lines of a set and its claims; text after # is a comment.
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

// lost returns the claims of the file that no longer hold.
func (h held) lost(v Verdict) (lost []string) {
	now := v.Held()
	for _, claim := range h[v.Set] {
		if !slices.Contains(now, claim) {
			lost = append(lost, v.Set+": "+claim)
		}
	}
	return lost
}
