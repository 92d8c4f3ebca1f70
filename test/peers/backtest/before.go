// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
)

//go:embed before.txt
var beforeText string

// previousRules are the outcomes of the sizing rules before expected cost on one set, by policy.
type previousRules map[string]previousOutcome

type previousOutcome struct {
	trade
	changesPerDay float64
}

// readPreviousRules reads before.txt.
func readPreviousRules(text string) (map[string]previousRules, error) {
	all := map[string]previousRules{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var set, policy string
		var f previousOutcome
		if _, err := fmt.Sscan(line, &set, &policy, &f.kills, &f.slack, &f.changesPerDay); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if all[set] == nil {
			all[set] = previousRules{}
		}
		all[set][policy] = f
	}
	return all, nil
}

// Change compares total costs at one price: Now of the cheapest posture, Priced of the cheapest posture or amount,
// which owners can specify now, and Before of the cheapest posture with the previous rules.
type Change struct{ Price, Now, Priced, Before float64 }

// Changes compares at each price; nil for a set on which the previous rules were not measured.
func (p previousRules) Changes(v Verdict) (all []Change) {
	var before []trade
	for _, t := range p {
		before = append(before, t.trade)
	}
	if len(before) == 0 {
		return nil
	}
	c := newCurve(before)
	for _, price := range prices {
		all = append(all, Change{
			price, v.postures.cheapest(price).cost(price), v.priced.cheapest(price).cost(price), c.cheapest(price).cost(price),
		})
	}
	return all
}

// printChanges writes the lines that scripts read. within: the previous rules cost at most 3 % over the clairvoyant.
func printChanges(w io.Writer, v Verdict, all []Change) {
	most := 1.03 * v.trades["clairvoyant"].slack
	for _, c := range all {
		fmt.Fprintf(
			w, "set=%s price=%g now=%.2f priced=%.2f before=%.2f change=%+.1f%% priced_change=%+.1f%% within=%t\n",
			v.Set, c.Price, c.Now, c.Priced, c.Before, 100*(c.Now/c.Before-1), 100*(c.Priced/c.Before-1), c.Before <= most,
		)
	}
}
