// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// goSmallest is the smallest limit in MiB at which the program is not killed without GOMEMLIMIT, found by running it
// bare, in a cgroup; the article's is 18. All limits are the article's in this unit. The live set is eight times the
// article's, because memfit does not size by single MiB.
const goSmallest = 176

const goCPU = "250m" // the article's

func goLimit(of float64) int { return int(of / 18 * goSmallest) }

func goName(of float64, told bool) string {
	name := "limit-" + strconv.Itoa(goLimit(of))
	if told {
		name += "-told"
	}
	return name
}

// goArm is a cell of the article's table: a limit, of which the Go runtime is told or not.
func goArm(of float64, told bool) Arm {
	mi := goLimit(of)
	a := Arm{
		Name: goName(of, told), Says: fmt.Sprintf("limit %dMi", mi), LimitMi: mi, CPU: goCPU, MayDie: true,
	}
	if told {
		a.Says += ", GOMEMLIMIT the same, GOGC=off"
		a.Env = map[string]string{"GOMEMLIMIT": strconv.Itoa(mi << 20), "GOGC": "off"}
	}
	return a
}

const (
	goNone   = "no-settings"
	goMemfit = "memfit"
	goTight  = "memfit-tight" // the profile at the limit of the spiral
	goSpiral = 9              // of 18: the live set and little more
)

func goStory() Story {
	arms := []Arm{{Name: goNone, Says: "no limit, no settings", CPU: goCPU}}
	for _, of := range []float64{13, 15, 17, 18, 23, 36, 72} {
		arms = append(arms, goArm(of, false))
		if of != 15 && of != 17 {
			arms = append(arms, goArm(of, true))
		}
	}
	arms = append(arms, goArm(goSpiral, true),
		Arm{Name: goMemfit, Says: fmt.Sprintf("limit %dMi, with memfit", goLimit(23)), LimitMi: goLimit(23), CPU: goCPU,
			Profile: "go"},
		Arm{Name: goTight, Says: fmt.Sprintf("limit %dMi, with memfit", goLimit(goSpiral)), LimitMi: goLimit(goSpiral),
			CPU: goCPU, Profile: "go", MayDie: true})
	return Story{
		Name: "go", Title: "Kubernetes Memory Limits and Go", Program: "sales", Image: "memfit.test/sales:dev",
		Met: "A Go service is killed at 17 MiB and lives at 18. The author gives it 1, 1.3, 2 and 4 times that, each with " +
			"and without telling the Go runtime (GOMEMLIMIT the same as the limit, GOGC=off). Without GOMEMLIMIT more " +
			"memory makes nothing faster; with it the service answers up to 21 % more. At 13 MiB GOMEMLIMIT keeps it " +
			"alive, at a third of its speed: the collector does little else.",
		Profiles: map[string]string{"go": "  runtime: {type: Go}\n  sizing: {mode: Recommend, limit: {min: 64Mi, max: 2Gi}}"},
		Arms:     arms,
		Steps:    []Step{{Name: "load", Path: "load?requests=2000&at=10", Inspect: true, Sized: true}},
		Look:     Place{goTight, "load"},
		Needed: []Need{
			{"which limit is in force", `of a limit of \d+Mi`},
			{"that the Go runtime was told of the limit", `GOMEMLIMIT=\d`},
			{"how much of it the live heap takes", `last collection found \S+ alive`},
			{"that the collector does little else: raise the limit", `the collector runs .*a higher one helps`},
			{"to how much", `Raise limit 88Mi to \d+Mi`},
		},
		Expect: []Expectation{
			{"Without GOMEMLIMIT, 0.72 of the smallest limit: killed (1: yes)", "OOMKilled at 17 of 18 MiB", 1, 0,
				goKilled(13, false), ""},
			{"With GOMEMLIMIT it lives there (0: not killed)", "no kill at 13 of 18 MiB", 0, 0, goKilled(13, true), ""},
			{"Smallest limit, no GOMEMLIMIT: requests per CPU second, of those without settings", "28.4 of 29.6 a second", 0.96,
				0.15, goSpeed(goName(18, false)), ""},
			{"4 times that, no GOMEMLIMIT", "29.3 of 29.6", 0.99, 0.15, goSpeed(goName(72, false)), ""},
			{"Twice that, with GOMEMLIMIT", "35.4 of 29.6", 1.19, 0.15, goSpeed(goName(36, true)), ""},
			{"4 times that, with GOMEMLIMIT", "35.9 of 29.6", 1.21, 0.15, goSpeed(goName(72, true)), ""},
			{"The spiral: half of the smallest limit, with memfit's GOMEMLIMIT (90 % of it)",
				"9.4 of 29.6 (at 13 of 18 MiB)", 0.55, 0.15,
				goSpeed(goTight), "the article counts time in a throttled container, here it is processor time, of which Go's " +
					"collector takes half at most (gcCPULimiter): 0.5 of a speed at which it took a tenth. What a Go program needs " +
					"beside its heap does not grow with it, so that this one has to spare at 13/18 what the article's had not"},
			{"Smallest safe limit: the peak that was seen without settings, of the smallest limit that was not fatal",
				"found by trying: 18 MiB", 1, 0.15, goFound, ""},
			{"The same, by what memfit asks for: the request, because a limit takes an hour of evidence",
				"found by trying: 18 MiB", 1, 0.15, goAsked, ""},
		},
		Table: Table{Step: "load", Columns: []Column{
			{"requests per CPU second", func(r *Reading) string { return fmt.Sprintf("%.0f", goRate(r)) }},
			{"collections", func(r *Reading) string { return fmt.Sprintf("%.0f", r.Values["gcCycles"]) }},
			{"seconds", func(r *Reading) string { return fmt.Sprintf("%.1f", r.Values["seconds"]) }},
			{"peak RSS", func(r *Reading) string { return mib(r.Values["peakRSS"]) }},
			{"GOMEMLIMIT", func(r *Reading) string {
				if r.Values["goMemLimit"] == 0 {
					return "-"
				}
				return mib(r.Values["goMemLimit"])
			}},
		}},
		Pictures: []Picture{goPicture()},
		Said: "Speed is told as requests per second of processor time, so that it does not depend on what else the machine " +
			"does; with a limit of 250m a container answers a quarter of that in a second.",
	}
}

func goRate(r *Reading) float64 {
	if r.Values["cpuSeconds"] == 0 {
		return math.NaN()
	}
	return r.Values["requests"] / r.Values["cpuSeconds"]
}

func goSpeed(arm string) func(*Run) (Measured, error) {
	return func(r *Run) (Measured, error) {
		var rates [2]float64
		for i, name := range []string{arm, goNone} {
			x, err := r.At(name, "load")
			if err != nil {
				return Measured{}, err
			}
			if x.Dead != "" {
				return Measured{}, fmt.Errorf("%s was killed: %s", name, x.Dead)
			}
			rates[i] = goRate(x)
		}
		return Measured{rates[0] / rates[1], fmt.Sprintf("%.0f of %.0f", rates[0], rates[1])}, nil
	}
}

// died says whether an arm was killed, at its start or later.
func (r *Run) died(arm string) (string, bool) {
	for _, x := range r.Readings {
		if x.Arm == arm && x.Dead != "" {
			return x.Dead, true
		}
	}
	return "no kill", false
}

func goKilled(of float64, told bool) func(*Run) (Measured, error) {
	return func(r *Run) (Measured, error) {
		how, dead := r.died(goName(of, told))
		m := Measured{From: fmt.Sprintf("%s at %dMi", how, goLimit(of))}
		if dead {
			m.Value = 1
		}
		return m, nil
	}
}

// goSurvived is the smallest limit of the table, in MiB, that was not fatal; 0: all were.
func goSurvived(r *Run) int {
	for _, of := range []float64{13, 15, 17, 18, 23, 36} {
		if _, dead := r.died(goName(of, false)); !dead {
			return goLimit(of)
		}
	}
	return 0
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
	return Measured{
		x.Look.Peak / float64(smallest<<20), fmt.Sprintf("a peak of %s, %dMi needed", mib(x.Look.Peak), smallest),
	}, nil
}

func goPicture() Picture {
	sizes := []float64{goSpiral, 13, 18, 23, 36, 72}
	p := Picture{Name: "go", Title: "Requests per CPU second, by limit", Unit: "requests"}
	for _, of := range sizes {
		p.Groups = append(p.Groups, fmt.Sprintf("%dMi", goLimit(of)))
	}
	for _, told := range []bool{false, true} {
		p.Series = append(p.Series, Series{
			map[bool]string{false: "limit only", true: "limit and GOMEMLIMIT"}[told],
			func(r *Run) []float64 {
				var out []float64
				for _, of := range sizes {
					v := math.NaN()
					if x, err := r.At(goName(of, told), "load"); err == nil && x.Dead == "" {
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
