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

// oracle returns the value of a variable for a container limit; 0 is no limit. ok is false when it is not set.
type oracle func(limit memory.Bytes) (value string, ok bool)

// formula is a variable's value as a function of the container's limit: prefix, number, suffix, where the number is
// limit*percent/100 in whole units less a step that depends on the limit. Without a percent it is a text per range of
// limits.
type formula struct {
	prefix, suffix string
	percent        int64
	unit           memory.Bytes
	steps          []step // by limit, ascending; the last one holds for every larger limit
	// from is the smallest limit for which the value is set. withoutLimit: it is also set on containers that have none, to
	// unlimited.
	from         memory.Bytes
	withoutLimit bool
	unlimited    string
}

// step is what comes off, or the whole text, for limits up to and including upTo.
type step struct {
	upTo memory.Bytes
	less int64
	text string
}

// limits are the container limits of the fit: from 4Mi to 1Ti, four to each doubling, and some that are not round.
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

// fit finds the formula behind the oracle's answers. It returns nil when the oracle never sets anything.
func fit(ask oracle) (*formula, error) {
	f := &formula{}
	f.unlimited, f.withoutLimit = ask(0)
	first := slices.IndexFunc(limits, func(l memory.Bytes) bool { _, ok := ask(l); return ok })
	if first < 0 {
		if f.withoutLimit {
			return nil, fmt.Errorf("it is set on containers without a limit only")
		}
		return nil, nil
	}
	if first > 0 {
		f.from = boundary(limits[first-1], limits[first], func(l memory.Bytes) bool { _, ok := ask(l); return ok })
	}
	f.split(ask, limits[first:])
	if f.percent > 0 {
		f.steps = stepsOf(limits[first:], func(l memory.Bytes) step {
			less, _ := f.taken(ask, l)
			return step{less: less}
		})
		if f.verify(ask) == nil {
			return f, nil
		}
	}
	// No share of the limit: then perhaps a few texts, each for a range of limits.
	f.percent, f.prefix, f.suffix = 0, "", ""
	f.steps = stepsOf(limits[first:], func(l memory.Bytes) step {
		text, _ := ask(l)
		return step{text: text}
	})
	return f, f.verify(ask)
}

// boundary is the smallest size in (no, yes] for which is holds, given that it does not for no, does for yes and
// changes once.
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

// split finds the one number in the value that changes with the limit, and its share and unit from the largest limit.
func (f *formula) split(ask oracle, at []memory.Bytes) {
	small, _ := ask(at[0])
	large, _ := ask(at[len(at)-1])
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
		// rounded up: steps only take away, and 1 % of 1Ti is more than any of them
		f.percent = (n*int64(f.unit)*100 + top - 1) / top
		return
	}
}

func (f *formula) number(limit memory.Bytes) int64 {
	return int64(limit) * f.percent / 100 / int64(f.unit)
}

// taken is what is missing from the plain share in the oracle's answer; ok is false when the answer has another form.
func (f *formula) taken(ask oracle, limit memory.Bytes) (less int64, ok bool) {
	value, set := ask(limit)
	middle, hasPrefix := strings.CutPrefix(value, f.prefix)
	middle, hasSuffix := strings.CutSuffix(middle, f.suffix)
	n, err := strconv.ParseInt(middle, 10, 64)
	return f.number(limit) - n, set && hasPrefix && hasSuffix && err == nil
}

// maxSteps is far more than any runtime has; answers that need more follow no formula, which verify then reports.
const maxSteps = 16

// stepsOf finds where the answer changes between the limits at, and to what.
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

// value is the formula's own answer for a container with a limit.
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

// verify compares the formula with the oracle at every limit asked for and around every edge the formula has.
func (f *formula) verify(ask oracle) error {
	at := slices.Clone(limits)
	for _, s := range append(f.steps, step{upTo: f.from}) {
		if s.upTo < memory.Max && s.upTo > 0 {
			at = append(at, s.upTo-1, s.upTo, s.upTo+1)
		}
	}
	for _, limit := range at {
		want, wantSet := ask(limit)
		got, set := f.value(limit)
		if set != wantSet || set && got != want {
			return fmt.Errorf("at a limit of %s memfit sets %q, and no simple formula gives that (%q)", limit, want, got)
		}
	}
	return nil
}

// constant reports whether the value is one text for every container, whatever its limit.
func (f *formula) constant() bool {
	return f.withoutLimit && f.percent == 0 && len(f.steps) == 1 && f.steps[0].text == f.unlimited && f.from == 0
}
