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

// Story specifies how one article is repeated: what is run and which results are expected. [runStory] runs it.
type Story struct {
	Name    string // of the command line, the namespace and the pictures
	Title   string // the article's
	Found   string // the problem that its author found, in a few sentences
	Program string // file or folder below programs/
	Image   string
	Command []string // with the programs below /app; nil: the image's own
	// Build is a command that compiles the program into /built, in the image BuildImage, before each arm starts.
	Build      []string
	BuildImage string
	Lean       bool // the version of [Story.lean]
	// Profiles are the specs of MemoryProfiles, as YAML, by name.
	Profiles map[string]string
	Arms     []Arm
	LeanArms []Arm // additional arms on a node with one processor and 5 GiB, where a program may need less
	Steps    []Step
	// Checked is the moment at which the output of `kubectl describe` and `kubectl memfit` is checked for Needed.
	Checked  Place
	Pages    bool // draw a map of the pages at that moment, as the author's visualizer did
	Needed   []Need
	Expect   []Expectation
	Pictures []Picture
	// Comment explains the measurements; "": none.
	Comment string
	// Known explains what memfit's output reports to the author, and what it does not report.
	Known string
}

// Arm is the program under one set of conditions. All arms of a story run at the same time, so that other load on the
// machine affects all of them.
type Arm struct {
	Name     string // of the Deployment
	Desc     string
	Image    string // "": the story's
	Env      map[string]string
	LimitMi  int    // 0: none
	CPU      string // limit; "": none
	Profile  string // of Story.Profiles; "": without memfit
	Replicas int    // 0: one
	MayDie   bool   // true: a kill is a result; false: it fails the story
	Wide     bool   // omitted on a node with one processor and 5 GiB
}

// Step is a request to each arm's program, which answers with a JSON object of numbers.
type Step struct {
	Name     string
	Path     string
	LeanPath string   // the path on a node with one processor and 5 GiB; "": the same
	Arms     []string // nil: all
	// Settle is how long after the answer RSS is read; 0: the answer's RSS is used.
	Settle time.Duration
	// Inspect requests an inspection by memfit's agent after the step, and records its snapshot.
	Inspect bool
	// Inspected are the arms that are inspected; nil: all.
	Inspected []string
	// Sized keeps the highest request and limit that memfit recommends in the minutes after the step.
	Sized bool
	// Predicted requests an inspection right before the step, which predicts the step's result: see [beforeStep].
	Predicted bool
}

// beforeStep names the readings right before a step.
func beforeStep(step string) string { return "before " + step }

// Place is an arm after a step.
type Place struct{ Arm, Step string }

// Need is a fact that the author had to know, and a regular expression that finds it in a sentence of memfit's output.
// POD in the pattern is replaced by the name of the checked pod.
type Need struct{ What, Pattern string }

// Expectation is one ratio, or another number, of an article, and the function that measures it here.
type Expectation struct {
	What    string
	Article string  // the article's numbers
	Want    float64 // the article's ratio, unless Differs is set
	Within  float64 // the largest accepted difference from Want
	Measure func(*Run) (Measured, error)
	Differs string // why Want is not the article's ratio; "": it is
}

// eitherWay is the tolerance of a number that is only reported: any measured value is accepted.
var eitherWay = math.Inf(1)

// lean returns the story for a node with one processor and 5 GiB: without the arms that need more and without their
// expectations, and with less work where the full work takes too long.
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

// leanReplicas bounds an arm's replicas on such a node: memfit compares replicas from four on.
const leanReplicas = 4

// errLeftOut is the error of an arm that the story does not have on this node.
var errLeftOut = errors.New("does not run in this story")

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

// Reading is what was read of one arm after one step.
type Reading struct {
	Arm, Step string
	Pod       string
	Values    map[string]float64
	Dead      string // how the container ended, where it did not answer
	// Snapshot is what memfit's agent found afterwards; it has Memory. nil: not inspected.
	Snapshot *v1alpha1.ContainerSnapshot
	Request  float64 // the highest request that memfit recommended then, in bytes; 0: none
	Limit    float64 // the highest limit, in bytes; 0: none
}

// Run holds the results of a story.
type Run struct {
	Story    Story
	Readings []Reading
	Output   map[string]string // what commands printed, by the command
	Map      string            // a picture of the pages, as SVG
	Began    time.Time
	Took     time.Duration
}

// At returns the reading of an arm after a step.
func (r *Run) At(arm, step string) (*Reading, error) {
	i := slices.IndexFunc(r.Readings, func(x Reading) bool { return x.Arm == arm && x.Step == step })
	if i < 0 && !slices.ContainsFunc(r.Story.Arms, func(a Arm) bool { return a.Name == arm }) {
		return nil, fmt.Errorf("%s %w", arm, errLeftOut)
	}
	if i < 0 {
		return nil, fmt.Errorf("no reading of %s after %s", arm, step)
	}
	return &r.Readings[i], nil
}

// Value returns the number key of a reading. It fails where the container was killed.
func (r *Run) Value(arm, step, key string) (float64, error) {
	x, err := r.At(arm, step)
	if err != nil {
		return 0, err
	}
	if x.Dead != "" {
		return 0, fmt.Errorf("%s did not survive %s: %s", arm, step, x.Dead)
	}
	v, ok := x.Values[key]
	if !ok {
		return 0, fmt.Errorf("%s does not report %s after %s", arm, key, step)
	}
	return v, nil
}

// point is a number of a run.
type point struct{ arm, step, key string }

// ratio divides two numbers, both amounts of memory.
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

// inspected returns what memfit's agent found in an arm after a step.
func (r *Run) inspected(arm, step string) (*v1alpha1.MemoryParts, error) {
	x, err := r.At(arm, step)
	if err != nil {
		return nil, err
	}
	if x.Snapshot == nil {
		return nil, fmt.Errorf("memfit's agent did not inspect %s after %s", arm, step)
	}
	return x.Snapshot.Memory, nil
}

// bytes converts an amount; nil: 0.
func bytes(q *resource.Quantity) float64 {
	if q == nil {
		return 0
	}
	return q.AsApproximateFloat64()
}

// part returns how much of a part memfit found resident, and how much of that is free.
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

// partRatio divides a part's resident memory after one step by that before.
func partRatio(arm, before, after, name string) func(*Run) (Measured, error) {
	return partsRatio(Place{arm, after}, Place{arm, before}, name)
}

// partsRatio divides a part's resident memory at one place by that at another.
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

// partShare returns a part's share of all resident memory, as memfit reports both.
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

// freeShare returns the free share of a part's resident memory, as memfit reports both.
func freeShare(arm, step, name string) func(*Run) (Measured, error) {
	return func(r *Run) (Measured, error) {
		resident, free, err := r.part(arm, step, name)
		if err != nil || resident == 0 {
			return Measured{}, fmt.Errorf("%s: %g, %w", name, resident, err)
		}
		return Measured{free / resident, outOf(free, resident) + " are free"}, nil
	}
}

// saving returns how much memory memfit predicts that an action releases: from least to most.
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

// predicted divides the memory that a step released by what memfit predicted right before it. Where memfit predicts
// bounds, any result between them is 1; RSS may change by 1/steadyPart while the agent inspects.
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
		released := a - b
		if by, err := r.Value(arm, step, "gaveBack"); err == nil { // measured by the program around the call alone
			released = by
		}
		bounds := mib(least)
		if most > least {
			bounds += " to " + mib(most)
		}
		m := Measured{1, fmt.Sprintf("predicted %s, given back %s", bounds, mib(released))}
		slack := a / steadyPart
		switch {
		case most > least && released > least-slack && released < most+slack:
		case released < least && least > 0:
			m.Value = released / least
		case released > most && most > 0:
			m.Value = released / most
		case released < least, released > most:
			return m, fmt.Errorf("%s", m.From)
		}
		return m, nil
	}
}

// outOf returns "a of b"; a unit that both have is written once.
func outOf(a, b float64) string {
	part, all := mib(a), mib(b)
	_, unit, _ := strings.Cut(all, " ")
	return strings.TrimSuffix(part, " "+unit) + " of " + all
}

// mib formats an amount in MiB, or in KiB where it is below 1 MiB.
func mib(bytes float64) string {
	if bytes != 0 && math.Abs(bytes) < mebi {
		return fmt.Sprintf("%.0f KiB", bytes/1024)
	}
	return fmt.Sprintf("%.0f MiB", bytes/mebi)
}

// Outcome is an expectation with its measurement.
type Outcome struct {
	Expectation
	Measured
	Err error
	OK  bool
}

// Judge compares a run with its story's expectations.
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

// Answer is a need, and the line of output that answers it; "": none. Same: the previous need has the same line.
type Answer struct {
	Need
	Line string
	Same bool
}
