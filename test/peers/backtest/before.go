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

// former is what the rules before expected cost did on one set, by policy.
type former map[string]formerly

type formerly struct {
	trade
	changesPerDay float64
}

// formerRules reads before.txt.
func formerRules(text string) (map[string]former, error) {
	all := map[string]former{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var set, policy string
		var f formerly
		if _, err := fmt.Sscan(line, &set, &policy, &f.kills, &f.slack, &f.changesPerDay); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if all[set] == nil {
			all[set] = former{}
		}
		all[set][policy] = f
	}
	return all, nil
}

// Change is what the cheapest posture costs at one price, now and by the rules before. Priced is that of postures and
// amounts, which an owner may write since.
type Change struct{ Price, Now, Priced, Before float64 }

// Changes compares at each price; nil for a set that the former rules were not measured on.
func (f former) Changes(v Verdict) (all []Change) {
	var before []trade
	for _, t := range f {
		before = append(before, t.trade)
	}
	if len(before) == 0 {
		return nil
	}
	c := newCurve(before)
	for _, price := range prices {
		all = append(all, Change{
			price, v.mine.cheapest(price).cost(price), v.priced.cheapest(price).cost(price), c.cheapest(price).cost(price),
		})
	}
	return all
}

// printChanges writes the lines that scripts read. within: the rules before were already within 3 % of the clairvoyant.
func printChanges(w io.Writer, v Verdict, all []Change) {
	most := 1.03 * v.trades["clairvoyant"].slack
	for _, c := range all {
		fmt.Fprintf(
			w, "set=%s price=%g now=%.2f priced=%.2f before=%.2f change=%+.1f%% priced_change=%+.1f%% within=%t\n",
			v.Set, c.Price, c.Now, c.Priced, c.Before, 100*(c.Now/c.Before-1), 100*(c.Priced/c.Before-1), c.Before <= most,
		)
	}
}
