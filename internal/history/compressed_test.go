// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/test/compress"
)

// wandering adds a sample every ten minutes of evidence, with the times between them divided by the factor.
func wandering(days int) *Container {
	c, r := New(), rand.New(rand.NewPCG(7, 7))
	for i := range days * 24 * 6 {
		limit := memory.Bytes(512) * mib
		if i > days*24*3 {
			limit = 256 * mib
		}
		at := start.Add((period.Evidence(i) * 10 * period.Minute).Duration())
		s := sampleOf("web-1", at, memory.Bytes(100+r.IntN(50))*mib)
		s.Started = start
		c.Add(s, limit)
	}
	return c
}

func TestACompressedHistoryHoldsTheSameEvidence(t *testing.T) {
	const days = 40
	plain := wandering(days)
	compress.By(t, 60)
	fast := wandering(days)
	if got, want := period.Of(fast.Span()), period.Evidence(plain.Span()); got != want {
		t.Errorf("it spans %v of evidence, want %v", time.Duration(got), time.Duration(want))
	}
	if fast.Factor() != 60 || plain.Factor() != 1 {
		t.Errorf("factors %d and %d, want 60 and 1", fast.Factor(), plain.Factor())
	}
	for name, f := range map[string]func(*Container) any{
		"samples": func(c *Container) any { return c.Samples() }, "trough": func(c *Container) any { return c.Trough() },
		"highest day": func(c *Container) any { return c.HighestDay() },
		"quantile":    func(c *Container) any { return c.Quantile(0.9) },
		"days":        func(c *Container) any { return len(c.Days()) },
		"hours":       func(c *Container) any { return len(c.AppendHours(nil)) },
		"spans":       func(c *Container) any { return len(c.AppendSpans(nil)) },
	} {
		if got, want := f(fast), f(plain); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	slow := plain.Days()
	for i, d := range fast.Days() {
		if d.Peak != slow[i].Peak || d.Trough != slow[i].Trough {
			t.Errorf("day %d: %v, want %v", i, d, slow[i])
		}
		if real := (period.Evidence(slow[i].Start.Sub(start))).Duration(); !d.Start.Equal(start.Add(real)) {
			t.Errorf("day %d begins at %s, want %s after the first sample", i, d.Start, real)
		}
	}
	now, before := fast.Regimes()
	was, beforeThat := plain.Regimes()
	if now.Peak != was.Peak || now.Low != was.Low || before.Low != beforeThat.Low || before.Limit != beforeThat.Limit {
		t.Errorf("regimes %v and %v, want %v and %v", now, before, was, beforeThat)
	}
}

// Days since 1970 do not fit 16 bits when a day takes four minutes.
func TestCompressedDaysDoNotOverflow(t *testing.T) {
	compress.By(t, period.MaxFactor)
	c := wandering(3)
	days := c.Days()
	if len(days) != 3 || !days[0].Start.Equal(start) {
		t.Errorf("%d days, the first at %v; want 3 from %s", len(days), days, start)
	}
	again := New()
	if err := again.UnmarshalBinary(encoded(t, c)); err != nil {
		t.Fatal(err)
	}
	if *again != *c {
		t.Error("a compressed history is another one after encoding")
	}
}

// The plugin reads the histories of a lab although its own evidence is not compressed.
func TestACompressedHistoryIsReadWithItsOwnFactor(t *testing.T) {
	plain := encoded(t, wandering(2))
	compress.By(t, 60)
	data := encoded(t, wandering(2))
	want := wandering(2).Days()
	if err := period.Compress(1); err != nil {
		t.Fatal(err)
	}
	c := New()
	if err := c.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	if days := c.Days(); c.Factor() != 60 || len(days) != 2 || days[1] != want[1] {
		t.Errorf("factor %d, days %v; want 60 and %v", c.Factor(), days, want)
	}
	if plain[0] != 1 || data[0] != 60 {
		t.Errorf("the first bytes are %#x without and %#x with compression", plain[0], data[0])
	}
	for name, bad := range map[string][]byte{
		"no factor": {0}, "a factor of 7": append([]byte{7}, plain[1:]...),
		"a factor out of range": append([]byte{0xff, 0xff, 0xff, 0xff, 0x0f}, plain[1:]...), "nothing after it": {60},
	} {
		if New().UnmarshalBinary(bad) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestLiveSetsAndLowsAreCompressed(t *testing.T) {
	compress.By(t, 60)
	var l Lows
	for s := time.Duration(0); s <= 7*time.Minute; s += 5 * time.Second { // seven hours of evidence
		l.Add(sampleOf("web-1", start.Add(s), 200*mib), start)
	}
	if low, whole := l.Low(); !whole || low == 0 {
		t.Errorf("after seven hours of evidence: %s, whole %v", low, whole)
	}
	s := LiveSet{}.With(400*mib, start)
	if s = s.With(100*mib, start.Add(3*time.Hour)); s.Bytes != 400*mib {
		t.Errorf("after seven and a half days of evidence the live set fell to %s", s.Bytes)
	}
	if s = s.With(100*mib, start.Add(4*time.Hour)); s.Bytes >= 400*mib {
		t.Errorf("after ten days of evidence the live set is still %s", s.Bytes)
	}
}
