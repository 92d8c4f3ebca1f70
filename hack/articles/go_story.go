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

// goLimit scales a limit of the article, in MiB, to this program. The article's smallest safe limit is 18; this
// program's was 176 when it was first measured, without Kubernetes, in a cgroup. The live set is eight times the
// article's, because memfit does not size by single MiB.
func goLimit(of float64) int { return int(of / 18 * 176) }

// The table's limits in MiB: goBare are those of arms without GOMEMLIMIT, with a finer grid between the article's 15
// and 19, which contains the smallest safe one; goMemlimits are those of arms with GOMEMLIMIT.
var (
	goBare = []int{
		goLimit(13), goLimit(15), 150, 156, 162, 169, goLimit(18), 186, goLimit(23), goLimit(36), goLimit(72),
	}
	goMemlimits = []int{goLimit(goSpiral), goLimit(18), goLimit(23), goLimit(36), goLimit(72)}
	// goMemfitLimits are limits of arms for which memfit sets GOMEMLIMIT, above the limit of the spiral.
	goMemfitLimits = []int{107, 113, 119, 126, 133, 140}
)

// goFatal returns the limit, in MiB, that is fatal only without GOMEMLIMIT: 13/18 of the smallest safe one, as in the
// article. On a node with one processor the Go runtime uses one, and less is allocated during a collection: the program
// peaks at 136 MiB instead of 163.
func goFatal(lean bool) int {
	if lean {
		return goLimit(11)
	}
	return goLimit(13)
}

// goThree returns the names of three arms with the same limit and GOMEMLIMIT. One arm is not enough: whether a fatal
// limit kills is random, as the article warns, and the speed of one arm varies by a tenth.
func goThree(mi int) []string {
	name := goName(mi, true)
	return []string{name, name + "-2", name + "-3"}
}

const goCPU = "250m" // the article's

func goName(mi int, memlimit bool) string {
	name := "limit-" + strconv.Itoa(mi)
	if memlimit {
		name += "-gomemlimit"
	}
	return name
}

// goArm returns a cell of the article's table: a limit, with an equal GOMEMLIMIT or without.
func goArm(mi int, memlimit bool) Arm {
	a := Arm{
		Name: goName(mi, memlimit), Desc: fmt.Sprintf("limit %dMi", mi), LimitMi: mi, CPU: goCPU, MayDie: true,
		Wide: memlimit || !slices.Contains(goLean, mi),
	}
	if memlimit {
		a.Desc += ", GOMEMLIMIT the same, GOGC=off"
		a.Env = map[string]string{"GOMEMLIMIT": strconv.Itoa(mi << 20), "GOGC": "off"}
	}
	return a
}

// goThreeArms returns the arms of [goThree].
func goThreeArms(mi int, lean bool) (arms []Arm) {
	for _, name := range goThree(mi) {
		a := goArm(mi, true)
		a.Name, a.Wide = name, !lean
		arms = append(arms, a)
	}
	return arms
}

// goLesser returns the arms that run only on a node with one processor.
func goLesser() []Arm {
	fatal := goArm(goFatal(true), false)
	fatal.Wide = false
	return append([]Arm{fatal}, goThreeArms(goFatal(true), true)...)
}

// goLean are the limits without GOMEMLIMIT that also run on a node with one processor: the smallest that is not fatal
// is among them.
var goLean = []int{goLimit(15), 156, goLimit(18)}

const (
	goNone   = "no-settings"
	goMemfit = "memfit"
	goTight  = "memfit-tight" // the profile at the limit of the spiral
	goSpiral = 9              // of 18: the live set and little more
)

// goMemfitName returns the name of the arm for whose limit memfit sets GOMEMLIMIT.
func goMemfitName(mi int) string {
	if mi == goLimit(goSpiral) {
		return goTight
	}
	return "memfit-" + strconv.Itoa(mi)
}

func goMemfitArm(name string, mi int) Arm {
	return Arm{
		Name: name, Desc: fmt.Sprintf("limit %dMi, with memfit", mi), LimitMi: mi, CPU: goCPU, Profile: "go", MayDie: true,
	}
}

func goStory() Story {
	arms := []Arm{
		{Name: goNone, Desc: "no limit, no settings", CPU: goCPU},
		goMemfitArm(goMemfit, goLimit(23)), goMemfitArm(goTight, goLimit(goSpiral)), // first: memfit sizes them later
	}
	for _, mi := range goBare {
		arms = append(arms, goArm(mi, false))
	}
	for _, mi := range goMemlimits[:3] {
		arms = append(arms, goArm(mi, true))
	}
	for _, mi := range []int{goFatal(false), goLimit(36), goLimit(72)} {
		arms = append(arms, goThreeArms(mi, false)...)
	}
	for _, mi := range goMemfitLimits {
		a := goMemfitArm(goMemfitName(mi), mi)
		a.Wide = true
		arms = append(arms, a)
	}
	return Story{
		Name: "go", Title: "Kubernetes Memory Limits and Go", Program: "sales", Image: "memfit.test/sales:dev",
		Found: "A Go service is OOM-killed with a limit of 17 MiB and runs with 18 MiB. The author gives it 1, " +
			"1.3, 2 and 4 times that, with and without GOMEMLIMIT equal to the limit (GOGC=off). Without " +
			"GOMEMLIMIT more memory makes it no faster; with GOMEMLIMIT it answers up to 21 % more. At 13 MiB " +
			"GOMEMLIMIT keeps it alive at a third of its speed, because the collector uses most of the CPU.",
		Profiles: map[string]string{"go": "  runtime: {type: Go}\n  sizing: {mode: Recommend, limit: {min: 64Mi, max: 2Gi}}"},
		Arms:     arms, LeanArms: goLesser(),
		// An arm has 250m, so the step takes at least 72 seconds: memfit reads usage four times a minute, and raises a
		// request to what four readings show. All arms together take 9.6 minutes of processor time on every machine.
		Steps: []Step{{Name: "load", Path: "load?cpu=18s&at=10", LeanPath: "load?cpu=6s&at=10",
			Inspect: true, Inspected: []string{goNone, goMemfit, goTight}, Sized: true}},
		Checked: Place{goTight, "load"},
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
				"18 MiB", 1, 0.15, goPeak, ""},
			{"Request that memfit recommends / the smallest safe limit",
				"18 MiB", 1, eitherWay, goRequest,
				"a request is what a program held through four readings, a minute, and promises no peak: a Go heap that " +
					"swings between what is alive and twice that holds less than its peak"},
			{"Limit that memfit recommends for the half-size pod / the smallest limit at full speed",
				"18 MiB",
				1.15, 0.15, goRaisedOf(goFullSpeed),
				"memfit names the limit that leaves as much as is alive, which is what Go aims at by itself; a program gets by " +
					"with less before it is a tenth slower (1.06 and 1.22 of two runs, where 1.00 had been expected). Below 1 the " +
					"named limit would be too slow"},
			{"The same / the smallest limit at which the collector runs less than twice as often",
				"-", 1, eitherWay, goRaisedOf(goNoSpiral),
				"a limit that just is no spiral still costs more processor time"},
			{"Limit that memfit recommends for the half-size pod / the smallest safe limit without GOMEMLIMIT",
				"-", 1, eitherWay, goRaisedOf(func(r *Run) (int, error) { return goSurvived(r), nil }),
				"GOMEMLIMIT lets a program live with less than it takes by itself"},
		},
		Pictures: []Picture{goPicture()},
		Comment: "Speed is requests per second of processor time, so that other load on the machine does not " +
			"count.",
	}
}

func goRate(r *Reading) float64 {
	if r.Values["cpuSeconds"] == 0 {
		return math.NaN()
	}
	return r.Values["requests"] / r.Values["cpuSeconds"]
}

// goUsual is the speed without GOMEMLIMIT: the median of all such arms that were not killed. By the article, more
// memory makes them no faster; the speed of one arm varies by a tenth.
func goUsual(r *Run) (float64, error) {
	var rates []float64
	for _, name := range append([]string{goNone}, goBareNames()...) {
		if x, err := r.At(name, "load"); err == nil && x.Dead == "" {
			rates = append(rates, goRate(x))
		}
	}
	if len(rates) == 0 {
		return 0, errors.New("no arm without GOMEMLIMIT survived")
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

// goSpeed divides the median speed of arms by [goUsual].
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

// goKilledOfThree is the share of killed arms with GOMEMLIMIT at the limit that is fatal without it.
func goKilledOfThree(r *Run) (Measured, error) {
	names, killed := goThree(goFatal(r.Story.Lean)), 0
	for _, name := range names {
		if _, dead := r.died(name); dead {
			killed++
		}
	}
	return Measured{float64(killed) / float64(len(names)), fmt.Sprintf("%d of %d", killed, len(names))}, nil
}

// goSpeedOfSmallest is the speed of the arm with the smallest safe limit ([goSurvived]); the author found the smallest
// by trying limits, too.
func goSpeedOfSmallest(r *Run) (Measured, error) {
	mi := goSurvived(r)
	if mi == 0 {
		return Measured{}, errors.New("every limit was fatal")
	}
	return goSpeed(goName(mi, false))(r)
}

// goShare is the collector's share of the processor time that the Go runtime counts as used.
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

// goSurvived returns the smallest limit of the table, in MiB, such that neither it nor a larger one was fatal; 0: the
// largest was fatal.
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

// goSmallest returns the smallest limit, in MiB, of the arms with memfit's GOMEMLIMIT such that neither it nor a larger
// one was fatal or unsafe.
func goSmallest(r *Run, safe func(*Reading) bool) (int, error) {
	smallest := 0
	for _, mi := range slices.Backward(append([]int{goLimit(goSpiral)}, goMemfitLimits...)) {
		if _, dead := r.died(goMemfitName(mi)); dead {
			break
		}
		x, err := r.At(goMemfitName(mi), "load")
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

// goFullSpeed returns the smallest limit at which the program is as fast as without GOMEMLIMIT, within a tenth (the
// variation of one arm). The article's is 0.96 times as fast.
func goFullSpeed(r *Run) (int, error) {
	usual, err := goUsual(r)
	if err != nil {
		return 0, err
	}
	return goSmallest(r, func(x *Reading) bool { return goRate(x) >= 0.9*usual })
}

// goCycles is how often the collector ran for one request.
func goCycles(r *Reading) float64 { return r.Values["gcCycles"] / r.Values["requests"] }

// goNoSpiral returns the smallest limit at which memfit reports no spiral.
func goNoSpiral(r *Run) (int, error) {
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

// goRaisedOf divides the limit that memfit recommends for the pod in the spiral by the smallest limit of some kind.
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

// goRequest divides the request that memfit recommends by the smallest safe limit.
func goRequest(r *Run) (Measured, error) {
	x, err := r.At(goMemfit, "load")
	if err != nil {
		return Measured{}, err
	}
	smallest := goSurvived(r)
	if x.Request == 0 || smallest == 0 {
		return Measured{}, errors.New("every limit was fatal, or memfit recommends no request")
	}
	return Measured{x.Request / float64(smallest<<20), fmt.Sprintf("%s found, %dMi needed", mib(x.Request), smallest)}, nil
}

// goPeak divides the peak that memfit observed without settings by the smallest safe limit.
func goPeak(r *Run) (Measured, error) {
	smallest := goSurvived(r)
	x, err := r.At(goNone, "load")
	if err != nil || x.Snapshot == nil || smallest == 0 {
		return Measured{}, fmt.Errorf("every limit was fatal, or the agent did not inspect: %w", err)
	}
	peak := bytes(x.Snapshot.Peak)
	return Measured{peak / float64(smallest<<20), fmt.Sprintf("a peak of %s, %dMi needed", mib(peak), smallest)}, nil
}

func goPicture() Picture {
	sizes := goMemlimits
	p := Picture{Name: "go", Title: "Requests per CPU second, by limit", Unit: "requests"}
	for _, mi := range sizes {
		p.Groups = append(p.Groups, fmt.Sprintf("%dMi", mi))
	}
	for _, memlimit := range []bool{false, true} {
		p.Series = append(p.Series, Series{
			map[bool]string{false: "limit only", true: "limit and GOMEMLIMIT"}[memlimit],
			func(r *Run) []float64 {
				var out []float64
				for _, mi := range sizes {
					v := math.NaN()
					if x, err := r.At(goName(mi, memlimit), "load"); err == nil && x.Dead == "" {
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
