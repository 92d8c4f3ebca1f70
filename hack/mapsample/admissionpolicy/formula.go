// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpolicy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/memfit/memfit/internal/memory"
)

// oracle returns the value of a variable for a container limit (0: none). ok is false when the variable is not set.
type oracle func(limit memory.Bytes) (value string, ok bool)

// formula computes a variable's value from the container's limit: prefix, number, suffix. The number is
// limit*percent/100 in whole units, minus a step's less. With percent 0 the value is the text of the limit's step.
type formula struct {
	prefix, suffix string
	percent        int64
	unit           memory.Bytes
	steps          []step // by limit, ascending; the last one applies to every larger limit
	// from is the smallest limit for which the value is set.
	from         memory.Bytes
	withoutLimit bool   // set on containers without a limit, too
	unlimited    string // the value there
}

// step has the number to subtract, or the whole text, for limits up to and including upTo.
type step struct {
	upTo memory.Bytes
	less int64
	text string
}

// limits are the container limits of the fit: from 4Mi to 1Ti, four round and four odd ones per doubling.
var limits = func() []memory.Bytes {
	var all []memory.Bytes
	for size := 4 * memory.MiB; size <= 1024*memory.GiB; size *= 2 {
		for quarter := memory.Bytes(4); quarter < 8; quarter++ {
			all = append(all, size*quarter/4, size*quarter/4+size/7+1)
		}
	}
	slices.Sort(all)
	return all
}()

var digits = regexp.MustCompile(`[0-9]+`)

// fit returns the formula of the oracle's values, nil when the oracle never sets the variable, and an error when no
// formula fits.
func fit(oracle oracle) (*formula, error) {
	f := &formula{}
	f.unlimited, f.withoutLimit = oracle(0)
	first := slices.IndexFunc(limits, func(l memory.Bytes) bool { _, ok := oracle(l); return ok })
	if first < 0 {
		if f.withoutLimit {
			return nil, fmt.Errorf("it is set on containers without a limit only")
		}
		return nil, nil
	}
	if first > 0 {
		f.from = boundary(limits[first-1], limits[first], func(l memory.Bytes) bool { _, ok := oracle(l); return ok })
	}
	f.split(oracle, limits[first:])
	if f.percent > 0 {
		f.steps = stepsOf(limits[first:], func(l memory.Bytes) step {
			less, _ := f.difference(oracle, l)
			return step{less: less}
		})
		if f.verify(oracle) == nil {
			return f, nil
		}
	}
	// Not a share of the limit: try a few texts, each for a range of limits.
	f.percent, f.prefix, f.suffix = 0, "", ""
	f.steps = stepsOf(limits[first:], func(l memory.Bytes) step {
		text, _ := oracle(l)
		return step{text: text}
	})
	return f, f.verify(oracle)
}

// boundary returns the smallest size in (no, yes] for which is returns true. is must return false for no and true for
// yes, and change once between them.
func boundary(no, yes memory.Bytes, is func(memory.Bytes) bool) memory.Bytes {
	for no+1 < yes {
		if middle := no + (yes-no)/2; is(middle) {
			yes = middle
		} else {
			no = middle
		}
	}
	return yes
}

// split finds the one number in the value that changes with the limit, and its share and unit at the largest limit.
func (f *formula) split(oracle oracle, at []memory.Bytes) {
	small, _ := oracle(at[0])
	large, _ := oracle(at[len(at)-1])
	if small == large {
		return
	}
	runs := digits.FindAllStringIndex(large, -1)
	smallRuns := digits.FindAllString(small, -1)
	for i, run := range runs {
		if i < len(smallRuns) && smallRuns[i] == large[run[0]:run[1]] {
			continue
		}
		n, err := strconv.ParseInt(large[run[0]:run[1]], 10, 64)
		if err != nil {
			return
		}
		top := int64(at[len(at)-1])
		f.prefix, f.suffix, f.unit = large[:run[0]], large[run[1]:], 1
		if n < top/int64(memory.MiB)*2 {
			f.unit = memory.MiB
		}
		// rounded up: steps only subtract, and 1 % of 1Ti is more than any step
		f.percent = (n*int64(f.unit)*100 + top - 1) / top
		return
	}
}

func (f *formula) number(limit memory.Bytes) int64 {
	return int64(limit) * f.percent / 100 / int64(f.unit)
}

// difference returns how far the oracle's number is below the plain share; ok is false when the value has another form.
func (f *formula) difference(oracle oracle, limit memory.Bytes) (less int64, ok bool) {
	value, set := oracle(limit)
	middle, hasPrefix := strings.CutPrefix(value, f.prefix)
	middle, hasSuffix := strings.CutSuffix(middle, f.suffix)
	n, err := strconv.ParseInt(middle, 10, 64)
	return f.number(limit) - n, set && hasPrefix && hasSuffix && err == nil
}

// maxSteps is far more than any runtime has; verify rejects values that need more.
const maxSteps = 16

// stepsOf returns the ranges of limits with equal answers.
func stepsOf(at []memory.Bytes, answer func(memory.Bytes) step) []step {
	var steps []step
	add := func(s step, upTo memory.Bytes) {
		s.upTo = upTo
		steps = append(steps, s)
	}
	for i := 1; i < len(at) && len(steps) < maxSteps; i++ {
		after := answer(at[i])
		for from := at[i-1]; ; { // more than one step may lie between two limits
			before := answer(from)
			if after == before || len(steps) == maxSteps {
				break
			}
			from = boundary(from, at[i], func(l memory.Bytes) bool { return answer(l) != before })
			add(before, from-1)
		}
	}
	add(answer(at[len(at)-1]), memory.Max)
	return steps
}

// value computes the variable's value for a container with a limit; false: not set.
func (f *formula) value(limit memory.Bytes) (string, bool) {
	if limit < f.from {
		return "", false
	}
	i := slices.IndexFunc(f.steps, func(s step) bool { return limit <= s.upTo })
	if f.percent == 0 {
		return f.steps[i].text, true
	}
	return f.prefix + strconv.FormatInt(f.number(limit)-f.steps[i].less, 10) + f.suffix, true
}

// verify compares the formula with the oracle at all limits and next to the formula's own boundaries.
func (f *formula) verify(oracle oracle) error {
	at := slices.Clone(limits)
	for _, s := range append(f.steps, step{upTo: f.from}) {
		if s.upTo < memory.Max && s.upTo > 0 {
			at = append(at, s.upTo-1, s.upTo, s.upTo+1)
		}
	}
	for _, limit := range at {
		want, wantSet := oracle(limit)
		got, set := f.value(limit)
		if set != wantSet || set && got != want {
			return fmt.Errorf("at a limit of %s memfit sets %q, and no simple formula does (%q)", limit, want, got)
		}
	}
	return nil
}

// constant reports whether the value is one text for every container, whatever its limit.
func (f *formula) constant() bool {
	return f.withoutLimit && f.percent == 0 && len(f.steps) == 1 && f.steps[0].text == f.unlimited && f.from == 0
}
