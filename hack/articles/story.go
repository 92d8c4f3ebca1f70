// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
)

const mebi = 1 << 20

// Story is one article, told again. Its values say what is run and what has to come out; [tell] does it.
type Story struct {
	Name    string // of the command line, the namespace and the pictures
	Title   string // the article's
	Met     string // what its author met, in a few sentences
	Program string // file or folder below programs/
	Image   string
	Command []string // with the programs below /app; nil: the image's own
	// Build is a command that compiles the program into /built, in the image BuildImage, before each arm starts.
	Build      []string
	BuildImage string
	Lean       bool // some of its arms were left out
	// Profiles are the specs of MemoryProfiles, as YAML, by name.
	Profiles map[string]string
	Arms     []Arm
	LeanArms []Arm // more of them on a node with one processor and 5 GiB, where a program may need less
	Steps    []Step
	// Look is where the author would have looked at `kubectl describe` and `kubectl memfit why`.
	Look     Place
	Pages    bool // a map of the pages is drawn there: the picture of its author's visualiser, from outside
	Needed   []Need
	Expect   []Expectation
	Pictures []Picture
	// Said is what this project makes of it, beside what was measured: what memfit lacked, what it learned.
	Said string
	// Known is whether its author would have known what to do, in words: beside what is counted, what a person makes of
	// it.
	Known string
}

// Arm is the program under one set of conditions. All arms of a story run at the same time, so that what else the
// machine does meets all of them.
type Arm struct {
	Name     string // of the Deployment
	Says     string
	Image    string // "": the story's
	Env      map[string]string
	LimitMi  int    // 0: none
	CPU      string // limit; "": none
	Profile  string // of Story.Profiles; "": without memfit
	Replicas int    // 0: one
	MayDie   bool   // a kill is a result; otherwise the story fails
	Wide     bool   // left out on a node with one processor and 5 GiB
}

// Step is a request to each arm's program, which answers with a JSON object of numbers.
type Step struct {
	Name     string
	Path     string
	LeanPath string   // the path on a node with one processor and 5 GiB; "": the same
	Arms     []string // nil: all
	// Settle is how long after the answer RSS is read; 0: it is the one of the answer.
	Settle time.Duration
	// Inspect has memfit's agent inspect the containers after the step, and keeps what it found.
	Inspect bool
	// Inspected are the arms that it inspects; nil: all.
	Inspected []string
	// Sized keeps the highest request and limit that memfit recommends in the minutes after the step.
	Sized bool
	// Predicted has it look right before the step, because it predicts what the step does: a reading of [beforeStep].
	Predicted bool
}

// beforeStep names the readings right before a step.
func beforeStep(step string) string { return "before " + step }

// Place is a moment of a story.
type Place struct{ Arm, Step string }

// Need is something that the author had to know, and a regular expression that finds it in a sentence of what memfit
// reported. POD stands for the name of the pod that is looked at.
type Need struct{ What, Pattern string }

// Expectation is one ratio, or another number, of an article beside the one that was measured.
type Expectation struct {
	What    string
	Article string  // the article's numbers
	Want    float64 // the article's ratio, or where Differs says why, another
	Within  float64 // at most so far from it
	Measure func(*Run) (Measured, error)
	Differs string // why another number than the article's is right here; "": the article's own
}

// eitherWay is a tolerance: what is told whichever way it goes, so that to be measured is all that is asked of it.
var eitherWay = math.Inf(1)

// lean is a story for a node with one processor and 5 GiB: without the arms that need more, and so without what is
// expected of them, and with less work where that takes too long.
func (s Story) lean() Story {
	s.Lean = true
	s.Arms = slices.DeleteFunc(slices.Concat(s.Arms, s.LeanArms), func(a Arm) bool { return a.Wide })
	for i, a := range s.Arms {
		s.Arms[i].Replicas = min(a.Replicas, leanReplicas)
	}
	s.Steps = slices.Clone(s.Steps)
	for i, step := range s.Steps {
		s.Steps[i].Path = cmp.Or(step.LeanPath, step.Path)
	}
	return s
}

// leanReplicas is how many a fleet has there: memfit compares no fewer.
const leanReplicas = 4

// errLeftOut: an arm that is not told here.
var errLeftOut = errors.New("is not told here")

// Picture is a chart of bars: a group for each label, and in it a bar for each series.
type Picture struct {
	Name, Title, Unit string
	Groups            []string
	Series            []Series
}

// Series has a number for each group; NaN: none.
type Series struct {
	Name   string
	Values func(*Run) []float64
}

// Measured is a number with those that it was computed from.
type Measured struct {
	Value float64
	From  string
}

// Reading is what one arm said after one step.
type Reading struct {
	Arm, Step string
	Pod       string
	Values    map[string]float64
	Dead      string // how it ended, instead of an answer
	// Look is what memfit's agent found afterwards; it has Memory.
	Look  *v1alpha1.ContainerSnapshot
	Asked float64 // the highest request that memfit recommended then, in bytes; 0: none
	Limit float64 // and the highest limit
}

// Run is what came of a story.
type Run struct {
	Story    Story
	Readings []Reading
	Said     map[string]string // what commands printed, by the command
	Map      string            // a picture of the pages, as SVG
	Began    time.Time
	Took     time.Duration
}

// At is what an arm said after a step.
func (r *Run) At(arm, step string) (*Reading, error) {
	i := slices.IndexFunc(r.Readings, func(x Reading) bool { return x.Arm == arm && x.Step == step })
	if i < 0 && !slices.ContainsFunc(r.Story.Arms, func(a Arm) bool { return a.Name == arm }) {
		return nil, fmt.Errorf("%s %w", arm, errLeftOut)
	}
	if i < 0 {
		return nil, fmt.Errorf("nothing was read of %s after %s", arm, step)
	}
	return &r.Readings[i], nil
}

// Value is one of its numbers.
func (r *Run) Value(arm, step, key string) (float64, error) {
	x, err := r.At(arm, step)
	if err != nil {
		return 0, err
	}
	if x.Dead != "" {
		return 0, fmt.Errorf("%s did not live through %s: %s", arm, step, x.Dead)
	}
	v, ok := x.Values[key]
	if !ok {
		return 0, fmt.Errorf("%s does not say %s after %s", arm, key, step)
	}
	return v, nil
}

// point is a number of a run.
type point struct{ arm, step, key string }

// ratio of two numbers, both amounts of memory.
func ratio(of, to point) func(*Run) (Measured, error) {
	return func(r *Run) (Measured, error) {
		a, err := r.Value(of.arm, of.step, of.key)
		if err != nil {
			return Measured{}, err
		}
		b, err := r.Value(to.arm, to.step, to.key)
		if err != nil || b == 0 {
			return Measured{}, fmt.Errorf("%s of %s after %s: %g, %w", to.key, to.arm, to.step, b, err)
		}
		return Measured{a / b, outOf(a, b)}, nil
	}
}

// inspected is what memfit's agent found at a place.
func (r *Run) inspected(arm, step string) (*v1alpha1.MemoryParts, error) {
	x, err := r.At(arm, step)
	if err != nil {
		return nil, err
	}
	if x.Look == nil {
		return nil, fmt.Errorf("memfit's agent was not asked about %s after %s", arm, step)
	}
	return x.Look.Memory, nil
}

// bytes of an amount; 0: it is absent.
func bytes(q *resource.Quantity) float64 {
	if q == nil {
		return 0
	}
	return q.AsApproximateFloat64()
}

// part of what memfit found resident, at a place, and how much of it is free.
func (r *Run) part(arm, step, name string) (resident, free float64, err error) {
	found, err := r.inspected(arm, step)
	if err != nil {
		return 0, 0, err
	}
	for _, p := range found.Parts {
		if p.Name == name {
			return bytes(&p.Resident), bytes(p.Free), nil
		}
	}
	return 0, 0, fmt.Errorf("memfit found no %s in %s after %s", name, arm, step)
}

// partRatio compares a part of what is resident after two steps.
func partRatio(arm, before, after, name string) func(*Run) (Measured, error) {
	return partsRatio(Place{arm, after}, Place{arm, before}, name)
}

// partsRatio compares a part of what is resident at two places.
func partsRatio(of, to Place, name string) func(*Run) (Measured, error) {
	return func(r *Run) (Measured, error) {
		a, _, err := r.part(of.Arm, of.Step, name)
		if err != nil {
			return Measured{}, err
		}
		b, _, err := r.part(to.Arm, to.Step, name)
		if err != nil || b == 0 {
			return Measured{}, fmt.Errorf("%s: %g, %w", name, b, err)
		}
		return Measured{a / b, outOf(a, b)}, nil
	}
}

// partShare is a part's share of all that is resident, by memfit.
func partShare(arm, step, name string) func(*Run) (Measured, error) {
	return func(r *Run) (Measured, error) {
		p, _, err := r.part(arm, step, name)
		if err != nil {
			return Measured{}, err
		}
		found, err := r.inspected(arm, step)
		if err != nil {
			return Measured{}, err
		}
		all := bytes(&found.Resident)
		return Measured{p / all, outOf(p, all)}, nil
	}
}

// freeShare is how much of a part holds nothing, by memfit.
func freeShare(arm, step, name string) func(*Run) (Measured, error) {
	return func(r *Run) (Measured, error) {
		resident, free, err := r.part(arm, step, name)
		if err != nil || resident == 0 {
			return Measured{}, fmt.Errorf("%s: %g, %w", name, resident, err)
		}
		return Measured{free / resident, outOf(free, resident) + " are free"}, nil
	}
}

// saving is what memfit reports that an action gives back, at a place: from least to most.
func (r *Run) saving(arm, step, action string) (least, most float64, err error) {
	found, err := r.inspected(arm, step)
	if err != nil {
		return 0, 0, err
	}
	for _, s := range found.Savings {
		if strings.Contains(strings.ToLower(s.Action), action) {
			least = bytes(&s.Amount)
			return least, max(least, bytes(s.AtMost)), nil
		}
	}
	return 0, 0, fmt.Errorf("memfit predicts nothing for %q of %s after %s", action, arm, step)
}

// predicted is what a step gave back, of what memfit reported right before it that it would: 1 is exactly. Where
// memfit gives bounds, anything between them is 1, give or take what RSS may change while the agent looks.
func predicted(arm, step, action string) func(*Run) (Measured, error) {
	return func(r *Run) (Measured, error) {
		least, most, err := r.saving(arm, beforeStep(step), action)
		if err != nil {
			return Measured{}, err
		}
		a, err := r.Value(arm, beforeStep(step), "rss")
		if err != nil {
			return Measured{}, err
		}
		b, err := r.Value(arm, step, "rss")
		if err != nil {
			return Measured{}, err
		}
		gave := a - b
		if by, err := r.Value(arm, step, "gaveBack"); err == nil { // the program read RSS around nothing but that
			gave = by
		}
		says := mib(least)
		if most > least {
			says += " to " + mib(most)
		}
		m := Measured{1, fmt.Sprintf("predicted %s, given back %s", says, mib(gave))}
		slack := a / oneMoment // of a process that runs, as in the look itself
		switch {
		case most > least && gave > least-slack && gave < most+slack:
		case gave < least && least > 0:
			m.Value = gave / least
		case gave > most && most > 0:
			m.Value = gave / most
		case gave < least, gave > most:
			return m, fmt.Errorf("%s", m.From)
		}
		return m, nil
	}
}

// outOf returns "a of b", with the unit once where both have the same.
func outOf(a, b float64) string {
	part, all := mib(a), mib(b)
	_, unit, _ := strings.Cut(all, " ")
	return strings.TrimSuffix(part, " "+unit) + " of " + all
}

// mib is an amount in MiB, or in KiB where it is less than one.
func mib(bytes float64) string {
	if bytes != 0 && math.Abs(bytes) < mebi {
		return fmt.Sprintf("%.0f KiB", bytes/1024)
	}
	return fmt.Sprintf("%.0f MiB", bytes/mebi)
}

// Outcome is an expectation beside what was measured.
type Outcome struct {
	Expectation
	Measured
	Err error
	OK  bool
}

// Judge compares a run with what was expected of it.
func Judge(r *Run) []Outcome {
	out := make([]Outcome, 0, len(r.Story.Expect))
	for _, e := range r.Story.Expect {
		o := Outcome{Expectation: e}
		if o.Measured, o.Err = e.Measure(r); r.Story.Lean && errors.Is(o.Err, errLeftOut) {
			continue
		}
		o.OK = o.Err == nil && !math.IsNaN(o.Value) && math.Abs(o.Value-e.Want) <= e.Within
		out = append(out, o)
	}
	return out
}

// Answer is a need, and the line that answers it; "": none does. Same: it is the line that answers the need before.
type Answer struct {
	Need
	Line string
	Same bool
}
