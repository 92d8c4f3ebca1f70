// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// goLimit turns a limit of the article, in MiB, into one of here. The article's smallest is 18. Here it was 176 where
// it was first looked for, by running the program bare, in a cgroup; all limits of the article keep to that. The live
// set is eight times the article's, because memfit does not size by single MiB.
func goLimit(of float64) int { return int(of / 18 * 176) }

// The table's limits in MiB: those of the article, and a finer grid between 15 and 19, because the smallest safe one
// is there.
var (
	goBare = []int{goLimit(13), goLimit(15), 150, 156, 162, 169, goLimit(18), 186, goLimit(23), goLimit(36), goLimit(72)}
	goTold = []int{goLimit(goSpiral), goLimit(18), goLimit(23), goLimit(36), goLimit(72)}
	// goGiven are limits of arms that memfit tells the Go runtime of, above the spiral's own.
	goGiven = []int{107, 113, 119, 126, 133, 140}
)

// goFatal is the limit, in MiB, that is fatal without GOMEMLIMIT and is not with it: 13/18 of the smallest, as in the
// article. On a node with one processor the Go runtime has one, too, and less is allocated beside a collection: the
// program takes 136 MiB at most instead of 163.
func goFatal(lean bool) int {
	if lean {
		return goLimit(11)
	}
	return goLimit(13)
}

// goThree names three arms with the same limit and GOMEMLIMIT. One arm is not enough: chance decides whether a fatal
// limit kills, as the article warns, and the speed of one arm varies by a tenth.
func goThree(mi int) []string {
	name := goName(mi, true)
	return []string{name, name + "-2", name + "-3"}
}

const goCPU = "250m" // the article's

func goName(mi int, told bool) string {
	name := "limit-" + strconv.Itoa(mi)
	if told {
		name += "-told"
	}
	return name
}

// goArm is a cell of the article's table: a limit, of which the Go runtime is told or not.
func goArm(mi int, told bool) Arm {
	a := Arm{
		Name: goName(mi, told), Says: fmt.Sprintf("limit %dMi", mi), LimitMi: mi, CPU: goCPU, MayDie: true,
		Wide: told || !slices.Contains(goLean, mi),
	}
	if told {
		a.Says += ", GOMEMLIMIT the same, GOGC=off"
		a.Env = map[string]string{"GOMEMLIMIT": strconv.Itoa(mi << 20), "GOGC": "off"}
	}
	return a
}

// goThreeArms are those of [goThree].
func goThreeArms(mi int, lean bool) (arms []Arm) {
	for _, name := range goThree(mi) {
		a := goArm(mi, true)
		a.Name, a.Wide = name, !lean
		arms = append(arms, a)
	}
	return arms
}

// goLesser are the arms that only a node with one processor has.
func goLesser() []Arm {
	fatal := goArm(goFatal(true), false)
	fatal.Wide = false
	return append([]Arm{fatal}, goThreeArms(goFatal(true), true)...)
}

// goLean are the limits of the table that a node with one processor has, too, without GOMEMLIMIT: the smallest that is
// not fatal is among them.
var goLean = []int{goLimit(15), 156, goLimit(18)}

const (
	goNone   = "no-settings"
	goMemfit = "memfit"
	goTight  = "memfit-tight" // the profile at the limit of the spiral
	goSpiral = 9              // of 18: the live set and little more
)

// goGivenName is the arm of a limit that memfit tells the runtime of.
func goGivenName(mi int) string {
	if mi == goLimit(goSpiral) {
		return goTight
	}
	return "memfit-" + strconv.Itoa(mi)
}

func goGivenArm(name string, mi int) Arm {
	return Arm{
		Name: name, Says: fmt.Sprintf("limit %dMi, with memfit", mi), LimitMi: mi, CPU: goCPU, Profile: "go", MayDie: true,
	}
}

func goStory() Story {
	arms := []Arm{
		{Name: goNone, Says: "no limit, no settings", CPU: goCPU},
		goGivenArm(goMemfit, goLimit(23)), goGivenArm(goTight, goLimit(goSpiral)), // memfit takes its time after them
	}
	for _, mi := range goBare {
		arms = append(arms, goArm(mi, false))
	}
	for _, mi := range goTold[:3] {
		arms = append(arms, goArm(mi, true))
	}
	for _, mi := range []int{goFatal(false), goLimit(36), goLimit(72)} {
		arms = append(arms, goThreeArms(mi, false)...)
	}
	for _, mi := range goGiven {
		a := goGivenArm(goGivenName(mi), mi)
		a.Wide = true
		arms = append(arms, a)
	}
	return Story{
		Name: "go", Title: "Kubernetes Memory Limits and Go", Program: "sales", Image: "memfit.test/sales:dev",
		Met: "A Go service is OOM-killed with a limit of 17 MiB and runs with 18 MiB. The author gives it 1, " +
			"1.3, 2 and 4 times that, with and without GOMEMLIMIT equal to the limit (GOGC=off). Without " +
			"GOMEMLIMIT more memory makes it no faster; with GOMEMLIMIT it answers up to 21 % more. At 13 MiB " +
			"GOMEMLIMIT keeps it alive at a third of its speed, because the collector uses most of the CPU.",
		Profiles: map[string]string{"go": "  runtime: {type: Go}\n  sizing: {mode: Recommend, limit: {min: 64Mi, max: 2Gi}}"},
		Arms:     arms, LeanArms: goLesser(),
		// 72 seconds or more, because an arm has 250m: memfit reads usage four times a minute, and raises a request for
		// what four readings show. All arms together take 9.6 minutes of processor time on every machine.
		Steps: []Step{{Name: "load", Path: "load?cpu=18s&at=10", LeanPath: "load?cpu=6s&at=10",
			Inspect: true, Inspected: []string{goNone, goMemfit, goTight}, Sized: true}},
		Look: Place{goTight, "load"},
		Needed: []Need{
			{"which limit is in force", `of a limit of \d+Mi`},
			{"that the Go runtime has the limit", `GOMEMLIMIT=\d`},
			{"how much of it the live heap takes", `last collection found \S+ alive`},
			{"that the collector does little else: raise the limit", `the collector took \d+ % .*a higher one helps`},
			{"to how much", `Increase limit 88Mi to \d+Mi`},
		},
		Known: "`kubectl describe pod` shows a healthy pod, because a starved collector kills no process. " +
			"The limit that memfit names applies together with memfit's GOMEMLIMIT.",
		Expect: []Expectation{
			{"OOM-killed at 0.72 of the smallest safe limit, no GOMEMLIMIT (1: yes)", "OOMKilled at 17 of 18 MiB", 1, 0,
				goKilled, ""},
			{"OOM-killed there with GOMEMLIMIT, share of three pods", "no kill at 13 of 18 MiB", 0, 0.34, goKilledOfThree, ""},
			{"Speed at the smallest safe limit, no GOMEMLIMIT", "28.4 of 29.6 a second", 0.96, 0.15, goSpeedOfSmallest, ""},
			{"Speed at 4 times that limit, no GOMEMLIMIT", "29.3 of 29.6", 0.99, 0.15, goSpeed(goName(goLimit(72), false)), ""},
			{"Speed at 2 times that limit, with GOMEMLIMIT", "35.4 of 29.6", 1.19, 0.15, goSpeed(goThree(goLimit(36))...), ""},
			{"Speed at 4 times that limit, with GOMEMLIMIT", "35.9 of 29.6", 1.21, 0.15, goSpeed(goThree(goLimit(72))...), ""},
			{"Speed at half of that limit, with memfit's GOMEMLIMIT (90 % of the limit)",
				"9.4 of 29.6 (at 13 of 18 MiB)", 0.65, 0.15,
				goSpeed(goTight), "the article counts time in a throttled container, here it is processor time: the speed is " +
					"between 0.55, where the collector takes the half that it may (gcCPULimiter) instead of a tenth, and 0.78, " +
					"where it takes the three tenths expected below and slows no request beside that. What a Go program needs " +
					"beside its heap does not grow with it, so that this one has to spare at 13/18 what the article's had not"},
			{"Collector's share of CPU there / no settings", "-", 3, 1.5, goShares(goTight),
				"the article shows the time alone"},
			{"Peak that memfit observed without settings / the smallest safe limit",
				"18 MiB", 1, 0.15, goFound, ""},
			{"Request that memfit recommends / the smallest safe limit",
				"18 MiB", 1, eitherWay, goAsked,
				"a request is what a program held through four readings, a minute, and promises no peak: a Go heap that " +
					"swings between what is alive and twice that holds less than its peak"},
			{"Limit that memfit recommends for the half-size pod / the smallest limit at full speed",
				"18 MiB",
				1.15, 0.15, goRaisedOf(goQuick),
				"memfit names the limit that leaves as much as is alive, which is what Go aims at by itself; a program gets by " +
					"with less before it is a tenth slower (1.06 and 1.22 of two runs, where 1.00 had been expected). Below 1 the " +
					"named limit would be too slow"},
			{"The same / the smallest limit at which the collector runs less than twice as often",
				"-", 1, eitherWay, goRaisedOf(goCalm),
				"a limit that just is no spiral still costs more processor time"},
			{"Limit that memfit recommends for the half-size pod / the smallest safe limit without GOMEMLIMIT",
				"-", 1, eitherWay, goRaisedOf(func(r *Run) (int, error) { return goSurvived(r), nil }),
				"GOMEMLIMIT lets a program live with less than it takes by itself"},
		},
		Pictures: []Picture{goPicture()},
		Said: "Speed is requests per second of processor time, so that other load on the machine does not " +
			"count.",
	}
}

func goRate(r *Reading) float64 {
	if r.Values["cpuSeconds"] == 0 {
		return math.NaN()
	}
	return r.Values["requests"] / r.Values["cpuSeconds"]
}

// goUsual is the speed without GOMEMLIMIT: the median of all arms that were given none and were not killed. More memory
// makes them no faster, says the article, and one of them alone is up to a tenth off.
func goUsual(r *Run) (float64, error) {
	var rates []float64
	for _, name := range append([]string{goNone}, goBareNames()...) {
		if x, err := r.At(name, "load"); err == nil && x.Dead == "" {
			rates = append(rates, goRate(x))
		}
	}
	if len(rates) == 0 {
		return 0, errors.New("no arm without GOMEMLIMIT lived")
	}
	slices.Sort(rates)
	return rates[len(rates)/2], nil
}

func goBareNames() (names []string) {
	for _, mi := range goBare {
		names = append(names, goName(mi, false))
	}
	return names
}

// goSpeed compares the speed of arms, the median of several, with the usual one.
func goSpeed(arms ...string) func(*Run) (Measured, error) {
	return func(r *Run) (Measured, error) {
		usual, err := goUsual(r)
		if err != nil {
			return Measured{}, err
		}
		rates := make([]float64, len(arms))
		for i, arm := range arms {
			x, err := r.At(arm, "load")
			if err != nil {
				return Measured{}, err
			}
			if x.Dead != "" {
				return Measured{}, fmt.Errorf("%s was killed: %s", arm, x.Dead)
			}
			rates[i] = goRate(x)
		}
		slices.Sort(rates)
		rate := rates[len(rates)/2]
		return Measured{rate / usual, fmt.Sprintf("%.0f of %.0f", rate, usual)}, nil
	}
}

// died reports whether an arm was killed, at its start or later.
func (r *Run) died(arm string) (string, bool) {
	for _, x := range r.Readings {
		if x.Arm == arm && x.Dead != "" {
			return x.Dead, true
		}
	}
	return "no kill", false
}

// goKilled is 1 where the fatal limit was fatal without GOMEMLIMIT.
func goKilled(r *Run) (Measured, error) {
	mi := goFatal(r.Story.Lean)
	how, dead := r.died(goName(mi, false))
	m := Measured{From: fmt.Sprintf("%s at %dMi", how, mi)}
	if dead {
		m.Value = 1
	}
	return m, nil
}

// goKilledOfThree is the part of the arms that were killed of those that GOMEMLIMIT gets through a fatal limit.
func goKilledOfThree(r *Run) (Measured, error) {
	names, killed := goThree(goFatal(r.Story.Lean)), 0
	for _, name := range names {
		if _, dead := r.died(name); dead {
			killed++
		}
	}
	return Measured{float64(killed) / float64(len(names)), fmt.Sprintf("%d of %d", killed, len(names))}, nil
}

// goSpeedOfSmallest is the speed of the arm with the smallest limit from which on none was fatal: the author's smallest
// was found by trying, too.
func goSpeedOfSmallest(r *Run) (Measured, error) {
	mi := goSurvived(r)
	if mi == 0 {
		return Measured{}, errors.New("every limit was fatal")
	}
	return goSpeed(goName(mi, false))(r)
}

// goShare is the collector's part of the processor time that the Go runtime counts as used.
func goShare(r *Reading) float64 {
	if r.Values["busySeconds"] == 0 {
		return math.NaN()
	}
	return r.Values["gcCPUSeconds"] / r.Values["busySeconds"]
}

func goShares(arm string) func(*Run) (Measured, error) {
	return func(r *Run) (Measured, error) {
		var shares [2]float64
		for i, name := range []string{arm, goNone} {
			if _, err := r.Value(name, "load", "gcCPUSeconds"); err != nil {
				return Measured{}, err
			}
			x, err := r.At(name, "load")
			if err != nil {
				return Measured{}, err
			}
			shares[i] = goShare(x)
		}
		return Measured{shares[0] / shares[1], fmt.Sprintf("%.0f %% of %.0f %%", 100*shares[0], 100*shares[1])}, nil
	}
}

// goSurvived is the smallest limit of the table, in MiB, from which on none was fatal; 0: the largest was.
func goSurvived(r *Run) int {
	smallest := 0
	for _, mi := range slices.Backward(goBare) {
		if _, dead := r.died(goName(mi, false)); dead {
			return smallest
		}
		if _, err := r.At(goName(mi, false), "load"); err == nil {
			smallest = mi
		}
	}
	return smallest
}

// goSmallest is the smallest limit, in MiB, that memfit told the runtime of and from which on none was fatal or unsafe.
func goSmallest(r *Run, safe func(*Reading) bool) (int, error) {
	smallest := 0
	for _, mi := range slices.Backward(append([]int{goLimit(goSpiral)}, goGiven...)) {
		if _, dead := r.died(goGivenName(mi)); dead {
			break
		}
		x, err := r.At(goGivenName(mi), "load")
		if err != nil {
			return 0, err
		}
		if !safe(x) {
			break
		}
		smallest = mi
	}
	if smallest == 0 {
		return 0, errors.New("none of the limits that memfit set for the runtime is safe")
	}
	return smallest, nil
}

// goQuick is the smallest safe limit by what the article counts, speed: as fast as without GOMEMLIMIT, within a tenth,
// by which one arm alone may be off. The article's is 0.96 times as fast.
func goQuick(r *Run) (int, error) {
	usual, err := goUsual(r)
	if err != nil {
		return 0, err
	}
	return goSmallest(r, func(x *Reading) bool { return goRate(x) >= 0.9*usual })
}

// goCycles is how often the collector ran for one request.
func goCycles(r *Reading) float64 { return r.Values["gcCycles"] / r.Values["requests"] }

// goCalm is the smallest one at which memfit reports no spiral.
func goCalm(r *Run) (int, error) {
	if _, err := r.Value(goNone, "load", "gcCycles"); err != nil {
		return 0, err
	}
	x, err := r.At(goNone, "load")
	if err != nil {
		return 0, err
	}
	usual := goCycles(x)
	return goSmallest(r, func(x *Reading) bool { return goCycles(x) < 2*usual })
}

// goRaisedOf compares the limit that memfit found in the spiral with the smallest of some kind.
func goRaisedOf(smallest func(*Run) (int, error)) func(*Run) (Measured, error) {
	return func(r *Run) (Measured, error) {
		of, err := smallest(r)
		if err != nil {
			return Measured{}, err
		}
		x, err := r.At(goTight, "load")
		if err != nil {
			return Measured{}, err
		}
		if x.Limit == 0 || of == 0 {
			return Measured{}, errors.New("no limit is safe, or memfit recommends none")
		}
		return Measured{x.Limit / float64(of<<20), fmt.Sprintf("limit %s found, %dMi needed", mib(x.Limit), of)}, nil
	}
}

// goAsked compares what memfit recommends as a request with it.
func goAsked(r *Run) (Measured, error) {
	x, err := r.At(goMemfit, "load")
	if err != nil {
		return Measured{}, err
	}
	smallest := goSurvived(r)
	if x.Asked == 0 || smallest == 0 {
		return Measured{}, errors.New("no limit without a kill, or memfit recommends nothing")
	}
	return Measured{x.Asked / float64(smallest<<20), fmt.Sprintf("%s asked for, %dMi needed", mib(x.Asked), smallest)}, nil
}

// goFound compares the peak that memfit saw without settings with it.
func goFound(r *Run) (Measured, error) {
	smallest := goSurvived(r)
	x, err := r.At(goNone, "load")
	if err != nil || x.Look == nil || smallest == 0 {
		return Measured{}, fmt.Errorf("no limit without a kill, or memfit saw nothing: %w", err)
	}
	peak := bytes(x.Look.Peak)
	return Measured{peak / float64(smallest<<20), fmt.Sprintf("a peak of %s, %dMi needed", mib(peak), smallest)}, nil
}

func goPicture() Picture {
	sizes := goTold
	p := Picture{Name: "go", Title: "Requests per CPU second, by limit", Unit: "requests"}
	for _, mi := range sizes {
		p.Groups = append(p.Groups, fmt.Sprintf("%dMi", mi))
	}
	for _, told := range []bool{false, true} {
		p.Series = append(p.Series, Series{
			map[bool]string{false: "limit only", true: "limit and GOMEMLIMIT"}[told],
			func(r *Run) []float64 {
				var out []float64
				for _, mi := range sizes {
					v := math.NaN()
					if x, err := r.At(goName(mi, told), "load"); err == nil && x.Dead == "" {
						v = goRate(x)
					}
					out = append(out, v)
				}
				return out
			},
		})
	}
	return p
}
