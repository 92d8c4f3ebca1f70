// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

func youngFor(price memory.Bytes) period.Evidence {
	m := DefaultModel()
	return m.young(price)
}

// bursting feeds a container that uses 40Mi, and 200Mi in its third hour, and calls each at every hour.
func bursting(t *testing.T, until time.Duration, each func(in Input, age time.Duration)) {
	t.Helper()
	h := history.New()
	for age := time.Duration(0); age <= until; age += time.Minute {
		use := 40 * mib
		if age >= 2*time.Hour && age < 3*time.Hour {
			use = 200 * mib
		}
		now := start.Add(age)
		h.Add(sample("a", now, use), 256*mib)
		if age > 0 && age%time.Hour == 0 {
			each(Input{Policy: defaults, History: h, Current: sizeOf(64*mib, 256*mib), Now: now}, age)
		}
	}
}

func TestABurstTeachesTheSpaceThatWouldHaveHeldIt(t *testing.T) {
	var young period.Evidence
	bursting(t, 3*time.Hour, func(in Input, _ time.Duration) { young = max(young, Evaluate(in).BurstEvidence) })
	if young <= youngFor(Balanced) {
		t.Fatalf("it teaches %s, no more than Balanced gives anyway", young.Duration())
	}
	bursting(t, time.Hour, func(in Input, age time.Duration) {
		in.Current = memory.Size{}
		alone := Evaluate(in)
		in.Prior = Prior{Image: "example.test/app", Containers: 2, Young: young}
		got := Evaluate(in)
		if alone.Size.Limit >= 200*mib || got.Size.Limit < 200*mib ||
			!says(got, "learned from bursts of 2 young containers of example.test/app") {
			t.Errorf("at %s: %s without, %s with what was learned: %q", age, alone.Size.Limit, got.Size.Limit, got.Reasons)
		}
	})
}

func TestAKillTeachesAsTheUseItIsRememberedAs(t *testing.T) {
	var last Recommendation
	bursting(t, time.Hour, func(in Input, age time.Duration) {
		in.Kills = []memory.OOMKill{kill(start.Add(age), 300*mib)}
		last = Evaluate(in)
	})
	if last.BurstEvidence != youngFor(Cautious) {
		t.Errorf("a kill at 300Mi with 40Mi of use teaches %s, want all that Cautious gives", last.BurstEvidence.Duration())
	}
}

func TestNothingIsTaughtByAnOldOrSteadyContainerOrAnEstimate(t *testing.T) {
	bursting(t, 50*time.Hour, func(in Input, age time.Duration) {
		if got := Evaluate(in).BurstEvidence; age >= 48*time.Hour && got != 0 {
			t.Errorf("at %s it teaches %s", age, got.Duration())
		}
	})
	steady, estimated := history.New(), history.New()
	for age := time.Duration(0); age <= 4*time.Hour; age += time.Minute {
		steady.Add(sample("a", start.Add(age), 40*mib), 64*mib)
		guess := sample("a", start.Add(age), 40*mib+memory.Bytes(age/time.Hour)*40*mib)
		guess.Exact = false
		estimated.Add(guess, 512*mib)
	}
	for name, h := range map[string]*history.Container{"steady": steady, "an estimate": estimated} {
		in := Input{Policy: defaults, History: h, Current: sizeOf(64*mib, 512*mib), Now: start.Add(4 * time.Hour)}
		if got := Evaluate(in).BurstEvidence; got != 0 {
			t.Errorf("%s teaches %s", name, got.Duration())
		}
	}
}

func TestNoPriorGivesMoreThanCautiousAndNoneLowersALimit(t *testing.T) {
	limit := func(in Input, posture memory.Bytes, young period.Evidence) memory.Bytes {
		in.Policy, in.Prior = posed(posture), Prior{Image: "a", Containers: 1, Young: young}
		return Evaluate(in).Size.Limit
	}
	for _, young := range []period.Evidence{
		math.MinInt64, -1, period.Hour, period.Day, 1000 * period.Day, math.MaxInt64,
	} {
		bursting(t, 50*time.Hour, func(in Input, age time.Duration) {
			alone, careful := limit(in, Balanced, 0), limit(in, Cautious, 0)
			if got := limit(in, Balanced, young); got < alone || got > max(alone, careful) {
				t.Errorf("%s learned, at %s: %s; without %s, Cautious %s", young.Duration(), age, got, alone, careful)
			}
			if got := limit(in, Cautious, young); got != careful {
				t.Errorf("%s learned, Cautious, at %s: %s, without %s", young.Duration(), age, got, careful)
			}
		})
	}
}

// TestAPriorChangesNothingForAContainerWithEvidenceOfItsOwn: neither from the third day on nor after a kill, and no
// request at any time.
func TestAPriorChangesNothingForAContainerWithEvidenceOfItsOwn(t *testing.T) {
	own := 0
	bursting(t, 60*time.Hour, func(in Input, age time.Duration) {
		for _, posture := range []memory.Bytes{Frugal, Balanced, Cautious} {
			for _, kills := range [][]memory.OOMKill{nil, {kill(start.Add(30*time.Minute), 64*mib)}} {
				in.Policy, in.Kills, in.Prior = posed(posture), kills, Prior{}
				alone := Evaluate(in)
				in.Prior = Prior{Image: "a", Containers: 64, Young: math.MaxInt64}
				got := Evaluate(in)
				if got.Size.Request != alone.Size.Request {
					t.Errorf("%s at %s: request %s, without what was learned %s", posture, age, got.Size.Request, alone.Size.Request)
				}
				if len(kills) == 0 && age < 48*time.Hour {
					continue
				}
				if own++; !reflect.DeepEqual(got, alone) {
					t.Errorf("%s at %s, %d kills: %s\nwithout what was learned: %s", posture, age, len(kills), got.Summary,
						alone.Summary)
				}
			}
		}
	})
	if own < 100 {
		t.Errorf("only %d were compared", own)
	}
}

// TestWhatIsLearnedAddsLittle: a container that nobody sized, at any use and age.
func TestWhatIsLearnedAddsLittle(t *testing.T) {
	most := map[memory.Bytes]memory.Bytes{Frugal: 197 * mib, Balanced: 141 * mib, Cautious: 0}
	for use := 4 * mib; use <= 2*gib; use *= 2 {
		h := history.New()
		for age := time.Duration(0); age <= 47*time.Hour; age += 5 * time.Minute {
			h.Add(sample("a", start.Add(age), use), 4*gib)
			if age == 0 || age%time.Hour != 0 {
				continue
			}
			for posture, room := range most {
				in := Input{Policy: posed(posture), History: h, Now: start.Add(age)}
				alone := Evaluate(in).Size.Limit
				in.Prior = Prior{Image: "a", Containers: 1, Young: math.MaxInt64}
				if got := Evaluate(in).Size.Limit; got < alone || got > alone+room || use >= 512*mib && got != alone {
					t.Errorf("%s, %s at %s: %s, without what was learned %s", posture, use, age, got, alone)
				}
			}
		}
	}
}

func TestWhatNobodyHasShownForAsLongAsHistoriesLastIsForgotten(t *testing.T) {
	p := Priors{"x#1": {Hours: 60, Containers: 1, Day: 100}}
	for day, known := range map[int64]bool{100: true, 99 + history.DaysKept: true, 100 + history.DaysKept: false} {
		if got := p.Of("x#1", 2, time.Unix(day*86400, 0)); (got.Containers == 1) != known || known && got.Image != "x" {
			t.Errorf("on day %d: %+v, known should be %t", day, got, known)
		}
	}
}

func TestPriorsArePutTogetherInAnyOrderAndOnce(t *testing.T) {
	a, b := Priors{}, Priors{}
	a.Add("x", Learned{Hours: 60, Containers: 1, Day: 5})
	b.Add("x", Learned{Hours: 50, Containers: 2, Day: 7})
	b.Add("y", Learned{Hours: 70, Containers: 4, Day: 6})
	ab, ba := Priors{}, Priors{}
	ab.AddAll(a)
	ab.AddAll(b)
	ab.AddAll(a)
	ba.AddAll(b)
	ba.AddAll(a)
	if !bytes.Equal(ab.Text(), ba.Text()) {
		t.Errorf("%s and %s", ab.Text(), ba.Text())
	}
	now := time.Unix(7*86400, 0)
	if got, want := ab.Of("x", 8, now), (Prior{Image: "x", Containers: 2, Young: 60 * period.Hour}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := ab.Of("y", 4, now); got != (Prior{}) {
		t.Errorf("what a container has shown itself: %+v", got)
	}
	if got := ab.Of("z", 1, now); got != (Prior{}) {
		t.Errorf("of an unknown image: %+v", got)
	}
	read, err := ReadPriors(ab.Text(), start)
	if err != nil || !bytes.Equal(read.Text(), ab.Text()) {
		t.Errorf("read: %s, %v", read.Text(), err)
	}
}

func TestAbsurdPriorsAreLeftOut(t *testing.T) {
	most := youngFor(Cautious).Hours()
	read, err := ReadPriors([]byte(`{"huge":{"hours":1e300,"containers":1,"day":99999999},"nobody":{"hours":60},
		"least":{"hours":1,"containers":1},"negative":{"hours":-5,"containers":1},"":{"hours":60,"containers":1},
		"two\nlines":{"hours":60,"containers":1},"before":{"hours":60,"containers":1,"day":-1}}`), start)
	if err != nil || len(read) != 1 || read["huge"] != (Learned{Hours: most, Containers: 1, Day: period.DayOf(start)}) {
		t.Errorf("%+v, %v", read, err)
	}
	if read.Add("nan", Learned{Hours: math.NaN(), Containers: 1}); len(read) != 1 {
		t.Errorf("not a number was taken: %+v", read)
	}
	for _, text := range []string{"", "[]", `{"a":{"hours":"60"}}`, strings.Repeat(" ", longestPriors+1)} {
		if p, err := ReadPriors([]byte(text), start); err == nil || len(p) > 0 {
			t.Errorf("%.20q was read: %v", text, p)
		}
	}
}

func TestPriorsAreBoundedAndForgetTheImageThatTaughtNothingForLongest(t *testing.T) {
	p := Priors{}
	for i := range 2 * imagesKept {
		image := fmt.Sprintf("%s-%d", strings.Repeat("x", 251), i)
		p.Add(image, Learned{Hours: 60, Containers: 1, Day: int64(i)})
	}
	oldest := int64(math.MaxInt64)
	for _, l := range p {
		oldest = min(oldest, l.Day)
	}
	if len(p) != imagesKept || oldest != imagesKept || len(p.Text()) > 100<<10 {
		t.Errorf("%d images, the oldest of day %d, in %d bytes", len(p), oldest, len(p.Text()))
	}
	if slices.ContainsFunc(p.Text(), func(b byte) bool { return b < ' ' }) {
		t.Error("the text has control characters")
	}
}
