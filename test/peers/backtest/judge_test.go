// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/memfit/memfit/internal/recommend"
)

func TestACurveIsTheLowerLeftEdge(t *testing.T) {
	c := newCurve([]trade{{4, 2}, {1, 10}, {2, 9}, {3, 3}, {5, 2}, {3, 8}, {9, 0}})
	if diff := cmp.Diff(curve{{1, 10}, {3, 3}, {4, 2}, {9, 0}}, c, cmp.AllowUnexported(trade{})); diff != "" {
		t.Errorf("corners (-want +got):\n%s", diff)
	}
	for slack, want := range map[float64]float64{0.5: math.Inf(1), 1: 10, 2: 6.5, 6.5: 1, 20: 0} {
		if got := c.at(slack); got != want {
			t.Errorf("%v kills at a slack of %v, want %v", got, slack, want)
		}
	}
}

// TestALowerCurveIsCheaperAtEveryPrice is why curves are convex: a lower curve is cheaper at any price of a kill.
func TestALowerCurveIsCheaperAtEveryPrice(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func() (all []trade) {
		for range 4 {
			all = append(all, trade{math.Round(10 * r.Float64()), 1 + math.Round(20*r.Float64())})
		}
		return all
	}
	below := 0
	for range 2000 {
		a, b := newCurve(draw()), newCurve(draw())
		if b[0].slack < a[0].slack || !a.below(b, 100) {
			continue
		}
		below++
		for price := 0.1; price < 100; price *= 1.3 {
			if lower, upper := a.cheapest(price).cost(price), b.cheapest(price).cost(price); lower > upper+1e-9 {
				t.Fatalf("%v is below %v, but costs %v instead of %v at a price of %v", a, b, lower, upper, price)
			}
		}
		if within, beyond := a.area(b); within < 0 || beyond < 0 {
			t.Fatalf("%v is below %v by an area of %v, and %v beyond", a, b, within, beyond)
		}
	}
	if below < 20 {
		t.Errorf("only %d pairs were compared", below)
	}
}

func TestTheAreaBetweenCurves(t *testing.T) {
	within, beyond := curve{{1, 4}, {3, 0}}.area(curve{{2, 6}, {4, 2}})
	// Both have a slack from 2 on: 6 and 2 kills there, 4 and 0 at 3, 2 and 0 at 4.
	if within != (4+4)/2. || beyond != (4+2)/2. {
		t.Errorf("area %v and %v beyond, want 4 and 3", within, beyond)
	}
}

// verdict judges synthetic trades.
func verdict(set string, trades map[string]trade) Verdict {
	var outcomes []Outcome
	for policy, t := range trades {
		outcomes = append(
			outcomes, Outcome{Policy: policy, Results: []Result{{Kills: int(t.kills), Slack: t.slack * gibDay, Demand: 1}}},
		)
	}
	return Judge(set, outcomes)
}

func TestAClaimThatIsLostIsNamed(t *testing.T) {
	vpa := map[string]trade{"vpa": {4, 4}, "vpa-wide": {8, 1}}
	with := func(balanced, cautious trade) Verdict {
		trades := map[string]trade{"memfit": balanced, "memfit-cautious": cautious}
		maps.Copy(trades, vpa)
		return verdict("s", trades)
	}
	good, narrow, bad := with(trade{3, 3}, trade{7, 0}), with(trade{3, 3}, trade{5, 2}), with(trade{3, 3}, trade{9, 2})
	path := filepath.Join(t.TempDir(), "held.txt")
	if err := os.WriteFile(
		path, []byte("# words\ns: postures, curve, cost 1, # and more\n\nother: curve\n"), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	before, err := readHeld(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		now  Verdict
		want []string
	}{
		"all held":                  {good, nil},
		"VPA has a wider setting":   {narrow, []string{"s: curve"}},
		"the wider posture is poor": {bad, []string{"s: postures", "s: curve"}},
	} {
		if diff := cmp.Diff(c.want, before.lost(c.now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := narrow.Held(); slices.Contains(got, "cost 50") || !slices.Contains(got, "balanced 1") {
		t.Errorf("claims %v: VPA's one kill is cheaper at 50 GiB-days, memfit's default at 1", got)
	}
	if err := os.WriteFile(path, []byte("s postures\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readHeld(path); err == nil {
		t.Error("a line without a colon was read")
	}
}

func TestHalvesAreEveryNameOnce(t *testing.T) {
	set := Generate(1)
	tuning, reporting := Halves(set)
	again, _ := Halves(set)
	if diff := cmp.Diff(tuning, again); diff != "" || tuning.Name != set.Name || reporting.Name != set.Name {
		t.Error("the same set is split in two ways")
	}
	seen := map[string]int{}
	for _, s := range slices.Concat(tuning.Series, reporting.Series) {
		seen[s.Name]++
	}
	if n := len(tuning.Series); len(seen) != len(set.Series) || n < len(set.Series)/4 || n > len(set.Series)*3/4 {
		t.Errorf(
			"%d series in one half, %d in the other, %d names of %d", n, len(reporting.Series), len(seen), len(set.Series),
		)
	}
}

func TestTheDefaultFlagsAreVPAs(t *testing.T) {
	d := vpaDefaults()
	if got := (flags{d.TargetMemoryPercentile, d.SafetyMarginFraction, d.PodMinMemoryMb}); got != vpaFlagDefaults {
		t.Errorf("%v, want %v", vpaFlagDefaults, got)
	}
	if !slices.Contains(flagGrid(), vpaFlagDefaults) {
		t.Error("VPA's defaults are not on its curve")
	}
}

// TestSettingsAreLikeForLike: memfit's curve over its settings has a point for each posture at each of VPA's margins
// and floors, including the plain postures, and all points differ.
func TestSettingsAreLikeForLike(t *testing.T) {
	var all []contender
	for _, c := range contenders {
		if strings.HasPrefix(c.name, "memfit") {
			all = append(all, c)
		}
	}
	all = append(all, settings()...)
	if want := 3 * len(margins) * len(floorsMiB); len(all) != want {
		t.Errorf("%d settings, want %d", len(all), want)
	}
	names, policies := map[string]bool{}, map[recommend.Policy]string{}
	for _, c := range all {
		p := c.make().(*memfit).policy
		if names[c.name] || policies[p] != "" {
			t.Errorf("%s is a duplicate, or has the same policy as %q", c.name, policies[p])
		}
		names[c.name], policies[p] = true, c.name
	}
}

// TestAChosenPriceIsPrintedAtThatPrice, and is on no curve.
func TestAChosenPriceIsPrintedAtThatPrice(t *testing.T) {
	outcomes := []Outcome{{Policy: "memfit"}, {Policy: "vpa"}, {Policy: "price-20", Results: []Result{{Kills: 3}}}}
	var out bytes.Buffer
	v := Judge("s", outcomes)
	v.Print(&out)
	if got := strings.Count(out.String(), "policy=price-20"); got != 1 || len(v.postures) != 1 ||
		!strings.Contains(out.String(), "set=s price=20 policy=price-20 cost=60.00\n") {
		t.Errorf("memfit's curve is %s; output:\n%s", v.postures, out.String())
	}
}

// TestSettingsAreJudgedSeparately: a setting that is better than the postures changes only the curve over settings.
func TestSettingsAreJudgedSeparately(t *testing.T) {
	trades := map[string]trade{"vpa": {4, 4}, "vpa-wide": {8, 1}, "memfit": {3, 5}, "memfit-cautious": {7, 2}}
	claims := verdict("s", trades).Held()
	for _, claim := range []string{"postures", "settings", "settings curve"} {
		if slices.Contains(claims, claim) {
			t.Errorf("%q holds, although VPA has fewer kills at 7 GiB-days: %v", claim, claims)
		}
	}
	trades[settingsPrefix+"cautious-m40-f250"] = trade{4, 0}
	claims = verdict("s", trades).Held()
	if !slices.Contains(claims, "settings") || !slices.Contains(claims, "settings curve") ||
		slices.Contains(claims, "curve") {
		t.Errorf("claims %v: want those over settings and not those over postures", claims)
	}
	var out bytes.Buffer
	verdict("s", trades).PrintCurves(&out, "tuning")
	want := "set=s half=tuning over=settings below_in_range=true below=true cheaper_at=1,2,5,7,10,20,50 " +
		"curve=3.00/5,4.00/0 vpa=4.00/4,8.00/1\n"
	if !strings.HasSuffix(out.String(), want) || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%s, want a line over postures, and %s", out.String(), want)
	}
}

// TestEveryConstantIsVaried: the table of the sensitivity analysis has every constant of the model.
func TestEveryConstantIsVaried(t *testing.T) {
	changed := map[string]bool{}
	for _, c := range constants {
		m, p := recommend.DefaultModel(), defaultPolicy()
		c.scale(&m, &p, 1.25)
		if m == recommend.DefaultModel() && cmp.Equal(p, defaultPolicy(), cmpopts.EquateComparable()) {
			t.Errorf("%s: nothing changed", c.name)
		}
		now, was := reflect.ValueOf(m), reflect.ValueOf(recommend.DefaultModel())
		for i := range now.NumField() {
			if !now.Field(i).Equal(was.Field(i)) {
				changed[now.Type().Field(i).Name] = true
			}
		}
	}
	model := reflect.TypeFor[recommend.Model]()
	for field := range model.Fields() {
		if name := field.Name; !changed[name] {
			t.Errorf("no entry varies %s", name)
		}
	}
}
