// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/budget"
)

const (
	often  = 50 * time.Millisecond
	seldom = 250 * time.Millisecond
)

// curve is demand in MiB after so many seconds.
type curve func(seconds float64) float64

// alarms reads a container of a limit in an interval and returns the alarms that it gives.
func alarms(w *Watch, limit, ceiling memory.Bytes, every, length time.Duration, c curve) (out []Prediction) {
	var h Horizon
	for at := time.Duration(0); at <= length; at += every {
		w.Add(Sample{start.Add(at), memory.Bytes(c(at.Seconds()) * float64(mib)), limit})
		if p, due := w.Due(limit, ceiling, h.Before(every, start)); due {
			w.Raise(p)
			out = append(out, p)
		}
	}
	return out
}

// ramp is flat for 5 s and then grows to a level.
func ramp(from, perSecond, to float64) curve {
	return func(s float64) float64 { return min(from+max(s-5, 0)*perSecond, to) }
}

// sawtooth climbs from low to high again and again.
func sawtooth(low, high, seconds float64) curve {
	return func(s float64) float64 { return low + (high-low)*math.Mod(s, seconds)/seconds }
}

func TestAlarms(t *testing.T) {
	steps := func(s float64) float64 { return min(64*math.Floor(s), 3968) }
	noise := func(s float64) float64 { return 0.4 * math.Sin(40*s) }
	for name, c := range map[string]struct {
		curve   curve
		limit   memory.Bytes
		ceiling memory.Bytes
		every   time.Duration
		want    int
	}{
		"a ramp of 5 MiB/s":            {ramp(60, 5, 300), 128 * mib, 0, seldom, 1},
		"a ramp of 25 MiB/s":           {ramp(60, 25, 300), 128 * mib, 0, often, 1},
		"a ramp of 100 MiB/s":          {ramp(100, 100, 900), 512 * mib, 0, often, 1},
		"a ramp of 400 MiB/s":          {ramp(100, 400, 1500), 1024 * mib, 0, often, 1},
		"a ramp that ends far below":   {ramp(60, 25, 90), 128 * mib, 0, often, 0},
		"a level near the limit":       {func(s float64) float64 { return 126.5 + noise(s) }, 128 * mib, 0, often, 0},
		"a slow leak":                  {func(s float64) float64 { return 100 + s/4 }, 128 * mib, 0, seldom, 1},
		"a start that ends at a third": {func(s float64) float64 { return min(400*s, 170) }, 512 * mib, 0, often, 0},
		"a sawtooth far below":         {sawtooth(100, 300, 4), 512 * mib, 0, often, 0},
		"a heap with a known cap":      {ramp(100, 100, 490), 512 * mib, 495 * mib, often, 0},
		"more than the known cap":      {ramp(100, 100, 900), 512 * mib, 480 * mib, often, 1},
		"a cap that exceeds the limit": {ramp(100, 100, 900), 512 * mib, 600 * mib, often, 1},
		"no limit":                     {ramp(100, 100, 900), 0, 0, often, 0},
		"steps of an allocator":        {steps, 4096 * mib, 0, often, 0},
		"memory that falls":            {func(s float64) float64 { return 126 - s }, 128 * mib, 0, often, 0},
	} {
		got := alarms(&Watch{}, c.limit, c.ceiling, c.every, 2*time.Minute, c.curve)
		for i := range got {
			if got[i].Demand > c.limit { // the process is dead
				got = got[:i]
				break
			}
		}
		if len(got) != c.want {
			t.Errorf("%s: %d alarms, want %d: %+v", name, len(got), c.want, got)
		}
	}
}

// TestAlarmsComeInTime: a ramp is reported early enough for the chain, and not long before.
func TestAlarmsComeInTime(t *testing.T) {
	for _, c := range []struct{ limit, perSecond float64 }{
		{128, 5}, {128, 25}, {128, 100}, {512, 5}, {512, 25}, {512, 100}, {512, 400}, {1024, 5}, {1024, 100}, {1024, 400},
	} {
		limit := memory.Bytes(c.limit) * mib
		got := alarms(&Watch{}, limit, 0, often, time.Hour, ramp(c.limit/4, c.perSecond, 3*c.limit))
		if len(got) == 0 {
			t.Errorf("%v MiB/s to %v: no alarm", c.perSecond, c.limit)
			continue
		}
		left := time.Duration(float64(limit-got[0].Demand) / float64(mib) / c.perSecond * float64(time.Second))
		least, most := actuation+requests*requestDefault, 500*time.Millisecond+2*time.Duration(1e9/c.perSecond)
		if left < least || left > most {
			t.Errorf("%v MiB/s to %v: %s before, want up to %s", c.perSecond, c.limit, left, most)
		}
		if (got[0].Left - left).Abs() > left/10 {
			t.Errorf("%v MiB/s to %v: %s left, reported %s", c.perSecond, c.limit, left, got[0].Left)
		}
	}
}

// TestSawtooth: a heap near its cap may cause an alarm, until it has turned around at that level.
func TestSawtooth(t *testing.T) {
	for name, c := range map[string]curve{
		"slow":        sawtooth(300, 500, 10),
		"fast":        sawtooth(300, 500, 1),
		"up and down": func(s float64) float64 { return 400 + 95*math.Sin(3*s) },
	} {
		var w Watch
		if early := alarms(&w, 512*mib, 0, often, time.Minute, c); len(early) > 1 {
			t.Errorf("%s: %d alarms in the first minute", name, len(early))
		}
		if late := alarms(&w, 512*mib, 0, often, time.Minute, c); len(late) != 0 {
			// the times of the second minute are those of the first: readings that are older than the newest are ignored
			t.Errorf("%s: %d alarms of readings that come twice", name, len(late))
		}
		n := 0
		for at := time.Minute + often; at < 50*time.Minute; at += often {
			w.Add(Sample{start.Add(at), memory.Bytes(c(at.Seconds()) * float64(mib)), 512 * mib})
			if p, due := w.Due(512*mib, 0, 425*time.Millisecond); due {
				w.Raise(p)
				n++
			}
		}
		if n != 0 {
			t.Errorf("%s: %d alarms in the next 49 minutes", name, n)
		}
		beyond := ramp(480, 100, 900)
		got := 0
		for at := time.Duration(0); at < 10*time.Second; at += often {
			w.Add(Sample{start.Add(50*time.Minute + at), memory.Bytes(beyond(at.Seconds()) * float64(mib)), 512 * mib})
			if p, due := w.Due(512*mib, 0, 425*time.Millisecond); due {
				w.Raise(p)
				got++
			}
		}
		if got != 1 {
			t.Errorf("%s: %d alarms when it grows beyond its level", name, got)
		}
	}
}

// TestFalseAlarms runs the shapes of collected heaps and of batch work near the limit, with the loans that alarms give:
// a level at which memory has turned around by itself is no alarm for a day, however rarely it comes back and whatever
// smaller bursts come between. Nothing shows the first burst of a container in advance, which costs a loan.
func TestFalseAlarms(t *testing.T) {
	const limit = 512
	bursts := func(every, base, high float64) curve {
		return func(s float64) float64 {
			small := base + 20*math.Abs(math.Sin(s/7)) // more than a thirty-second of the limit
			if in := math.Mod(s, every); s > every && in < 4 {
				return small + (high-small)*min(in, 4-in, 1)
			}
			return small
		}
	}
	for name, c := range map[string]struct {
		curve
		hours   time.Duration
		ceiling memory.Bytes
		want    int
	}{
		"a slow heap":                     {sawtooth(300, 490, 10), 5, 0, 1},
		"a fast heap":                     {sawtooth(300, 490, 2), 5, 0, 1},
		"a burst every 10 minutes":        {bursts(600, 300, 480), 5, 0, 1},
		"a burst every 2 hours":           {bursts(2*3600, 300, 480), 10, 0, 1},
		"a daily job":                     {bursts(23*3600, 300, 480), 48, 0, 1},
		"a burst that fits under the cap": {bursts(600, 300, 480), 5, 490 * mib, 0},
	} {
		var w Watch
		n := 0
		var until time.Duration
		for at := time.Duration(0); at < c.hours*time.Hour; {
			demand, allowed := memory.Bytes(c.curve(at.Seconds())*float64(mib)), memory.Bytes(limit)*mib
			if at < until {
				allowed = allowed.Percent(125)
			}
			w.Add(Sample{start.Add(at), demand, allowed})
			if p, due := w.Due(allowed, c.ceiling, 420*time.Millisecond); due {
				w.Raise(p)
				n++
				until = at + Hold
			}
			if at += seldom; w.MayReach(allowed, 2*time.Second) {
				at += often - seldom
			}
		}
		if n > c.want {
			t.Errorf("%s: %d alarms in %d h, want %d", name, n, c.hours, c.want)
		}
	}
}

// TestABurstAboveTheLimitIsReportedAgain: a loan let it pass, and was returned. That its memory turned around above the
// limit does not show that it turns around below.
func TestABurstAboveTheLimitIsReportedAgain(t *testing.T) {
	const limit = 256 * mib
	var w Watch
	var raised []time.Duration
	until := time.Duration(0)
	for at := time.Duration(0); at < 5*time.Hour; at += often {
		demand, allowed := 150*mib, limit
		if s := math.Mod(at.Seconds(), 2*3600) - 3600; 0 < s && s < 4 {
			demand = memory.Bytes((150 + 150*min(s, 4-s, 1)) * float64(mib))
		}
		if at < until {
			allowed = limit.Percent(MaxPercent)
		}
		w.Add(Sample{start.Add(at), demand, allowed})
		if p, due := w.Due(allowed, 0, 420*time.Millisecond); due {
			w.Raise(p)
			raised, until = append(raised, at), at+Hold
		}
	}
	if len(raised) != 2 {
		t.Errorf("two bursts to 300Mi at a limit of %s, and alarms after %v", limit, raised)
	}
}

// TestATurnAboveTheLimitHidesNoneBelow: work that comes every 20 minutes turns around below the limit. Once it was
// more, with a loan; the usual one caused alarms for a day then.
func TestATurnAboveTheLimitHidesNoneBelow(t *testing.T) {
	const limit = 512 * mib
	var w Watch
	n := 0
	for at := time.Duration(0); at < 5*time.Hour; at += often {
		high, allowed := 480.0, limit
		if time.Hour <= at && at < 2*time.Hour { // the loan
			high, allowed = 600, limit.Percent(MaxPercent)
		}
		demand := 300.0
		if s := math.Mod(at.Seconds(), 20*60) - 10*60; 0 < s && s < 4 {
			demand += (high - demand) * min(s, 4-s, 1)
		}
		w.Add(Sample{start.Add(at), memory.Bytes(demand * float64(mib)), allowed})
		if p, due := w.Due(allowed, 0, 420*time.Millisecond); due {
			w.Raise(p)
			if at >= 2*time.Hour {
				n++
			}
		}
	}
	if n != 0 {
		t.Errorf("%d alarms of what turns around below the limit", n)
	}
}

// TestAlarmsAreNotRepeated: except for another limit, a kill that comes in half the time, a need that had ended, and an
// alarm that was not sent.
func TestAlarmsAreNotRepeated(t *testing.T) {
	after := func(passed time.Duration, demand, limit memory.Bytes, left time.Duration) Prediction {
		return Prediction{Sample{start.Add(passed), demand * mib, limit * mib}, 50 * mib, left}
	}
	begin := after(0, 490, 512, 440*time.Millisecond)
	for name, c := range map[string]struct {
		then Prediction
		want bool
	}{
		"immediately":            {after(often, 493, 512, 380*time.Millisecond), true},
		"a second later":         {after(time.Second, 500, 512, 400*time.Millisecond), true},
		"with another limit":     {after(time.Second, 600, 612, 400*time.Millisecond), false},
		"another limit too soon": {after(often, 600, 612, 400*time.Millisecond), true},
		"after the need":         {after(11*time.Second, 500, 512, 240*time.Millisecond), false},
		"the clock was set back": {after(-time.Hour, 500, 512, 240*time.Millisecond), false},
	} {
		if got := (&Watch{last: begin}).repeats(&c.then); got != c.want {
			t.Errorf("%s: repeated %t, want %t", name, got, c.want)
		}
	}
	slow := Prediction{Sample{start, 510 * mib, 512 * mib}, mib / 4, 8 * time.Second}
	soon := Prediction{Sample{start.Add(2 * time.Second), 511 * mib, 512 * mib}, 2 * mib, 500 * time.Millisecond}
	if (&Watch{last: slow}).repeats(&soon) {
		t.Error("a kill that comes in a third of the time is no other prediction")
	}
	w := Watch{last: begin}
	w.Forget()
	again, early := after(time.Second, 500, 512, 240*time.Millisecond), after(often, 493, 512, 380*time.Millisecond)
	if w.repeats(&again) || !w.repeats(&early) {
		t.Error("an alarm that was not sent is raised again after a second")
	}
}

// TestKilled: what a kill gives back is not a turn.
func TestKilled(t *testing.T) {
	var w Watch
	n := 0
	for i := range 5 {
		from := time.Duration(i) * 20 * time.Second
		for at := time.Duration(0); at < 6*time.Second; at += often {
			demand := memory.Bytes(200+60*at.Seconds()) * mib
			if demand > 512*mib {
				break
			}
			w.Add(Sample{start.Add(from + at), demand, 512 * mib})
			if p, due := w.Due(512*mib, 0, 425*time.Millisecond); due {
				w.Raise(p)
				n++
			}
		}
		w.Killed()
	}
	if n != 5 {
		t.Errorf("%d alarms before 5 kills", n)
	}
}

// TestSoon: how often a container is read follows the last interval, an alarm does not.
func TestSoon(t *testing.T) {
	var w Watch
	w.Add(Sample{start, 300 * mib, 512 * mib})
	w.Add(Sample{start.Add(seldom), 340 * mib, 512 * mib})
	if _, due := w.Due(512*mib, 0, 2*time.Second); due || !w.MayReach(512*mib, 2*time.Second) {
		t.Errorf("one step of 40Mi: an alarm %t, read more often %t", due, !due)
	}
	w.Add(Sample{start.Add(2 * seldom), 340 * mib, 512 * mib})
	if w.MayReach(512*mib, time.Second) {
		t.Error("read more often although it stopped growing")
	}
}

func TestHorizon(t *testing.T) {
	var h Horizon
	now := start
	for _, step := range []struct {
		name string
		do   func()
		want time.Duration
	}{
		{"before it is measured", func() {}, 420 * time.Millisecond},
		{"a fast API server", func() { h.RecordWrite(10*time.Millisecond, now) }, 330 * time.Millisecond},
		{"a fast chain", func() { h.RecordChain(90*time.Millisecond, now) }, 330 * time.Millisecond},
		{"the longest counts", func() { h.RecordChain(230*time.Millisecond, now) }, 380 * time.Millisecond},
		{"a slow API server", func() { h.RecordWrite(300*time.Millisecond, now) }, 1200 * time.Millisecond},
		{"ten minutes later", func() { now = now.Add(measuredFor + time.Second) }, 420 * time.Millisecond},
		{"a fault of the chain", func() { h.RecordChain(time.Minute, now) }, 2150 * time.Millisecond},
		{"many without a fault", func() {
			for range measuredKept {
				h.RecordChain(-1, now)
			}
		}, 250 * time.Millisecond},
	} {
		if step.do(); h.Before(often, now) != step.want {
			t.Errorf("%s: %s, want %s", step.name, h.Before(often, now), step.want)
		}
	}
}

// FuzzWatch: a container does anything. Alarms are of a container that is near its limit, grows and was not reported
// within the last second, and what is claimed adds up.
func FuzzWatch(f *testing.F) {
	f.Add([]byte("\x32\x10\x00\x20\x32\x30\x00\x20\x32\x50\x00\x20\x32\xf0\x01\x02"), int64(512<<20))
	f.Add([]byte("\x00\x00\x00\x00\xff\xff\xff\xff"), int64(-1))
	f.Fuzz(func(t *testing.T, text []byte, limit int64) {
		text = text[:min(len(text), 4<<10)]
		budget.Check(t, budget.Budget{Bytes: 64 << 10, CPU: time.Second}, len(text), func() {
			var w Watch
			var h Horizon
			at, last := start, time.Time{}
			for ; len(text) >= 4; text = text[4:] {
				at = at.Add(time.Duration(int8(text[0])) * 10 * time.Millisecond)
				demand := memory.Bytes(binary.LittleEndian.Uint16(text[1:])) * mib / 16
				w.Add(Sample{at, demand, memory.Bytes(limit)})
				p, due := w.Due(memory.Bytes(limit), memory.Bytes(text[3])*mib, h.Before(often, at))
				if p.Left < 0 || p.PerSecond < 0 || w.count > ringSize {
					t.Fatalf("%+v", p)
				}
				if !due {
					continue
				}
				w.Raise(p)
				if p.Limit <= 0 || p.PerSecond <= 0 || p.Demand < p.Limit/2-1 || p.At.Sub(last).Abs() < alarmEvery {
					t.Fatalf("%+v after %s", p, last)
				}
				if a := (Alarm{Limit: p.Limit, Demand: p.Demand, PerSecond: p.PerSecond, Left: p.Left}); !plausible(&a) {
					t.Fatalf("%+v does not add up", p)
				}
				last = p.At
			}
		})
	})
}

// FuzzTurns: a container does anything. No alarm is raised at a level at which its memory has turned around since it
// started, and a ramp beyond that is reported before its limit.
func FuzzTurns(f *testing.F) {
	f.Add([]byte("\x00\x40\x80\xc0\xf0\x20\x60\xa0\xf0\xf8\x00\x80\xf8"), uint8(25))
	f.Add([]byte("\xc0\xc8\xd0\xd8\xe0\xe8\xf0\xf8"), uint8(200))
	f.Fuzz(func(t *testing.T, levels []byte, perSecond uint8) {
		levels = levels[:min(len(levels), 512)]
		budget.Check(t, budget.Budget{Bytes: 64 << 10, CPU: time.Second}, len(levels), func() {
			var w Watch
			turn, at := noAlarmBelowATurn(t, &w, levels)
			w.last = Prediction{}
			rampIsReported(t, &w, at, turn, memory.Bytes(perSecond/2+5)*mib)
		})
	})
}

const fuzzLimit, fuzzHorizon = 256 * mib, 420 * time.Millisecond

// noAlarmBelowATurn follows levels in MiB that end with a fall, and returns the highest turn.
func noAlarmBelowATurn(t *testing.T, w *Watch, levels []byte) (turn memory.Bytes, at time.Time) {
	t.Helper()
	all := make([]memory.Bytes, 0, len(levels)+1)
	at = start
	for _, level := range levels {
		at = at.Add(often)
		all = append(all, memory.Bytes(level)*mib)
		w.Add(Sample{at, memory.Bytes(level) * mib, fuzzLimit})
		p, due := w.Due(fuzzLimit, 0, fuzzHorizon)
		if !due {
			continue
		}
		w.Raise(p)
		if turn := highestTurn(all, fuzzLimit/turnShare); p.Demand <= turn {
			t.Fatalf("an alarm at %s, and it has turned around at %s: %v", p.Demand, turn, levels)
		}
	}
	at = at.Add(often)
	w.Add(Sample{at, fuzzRamp, fuzzLimit})
	return highestTurn(append(all, fuzzRamp), fuzzLimit/turnShare), at
}

// fuzzRamp is where ramps begin.
const fuzzRamp = 32 * mib

// rampIsReported: if what is left above the turn is more than the horizon needs.
func rampIsReported(t *testing.T, w *Watch, at time.Time, turn, perSecond memory.Bytes) {
	t.Helper()
	if turn.Plus(fuzzLimit/levelShare).Plus(perSecond/2) > fuzzLimit {
		return
	}
	for passed := often; ; passed += often {
		demand := fuzzRamp + memory.Bytes(float64(perSecond)*passed.Seconds())
		if demand > fuzzLimit {
			break
		}
		w.Add(Sample{at.Add(passed), demand, fuzzLimit})
		if _, due := w.Due(fuzzLimit, 0, fuzzHorizon); due {
			return
		}
	}
	t.Fatalf("no alarm of a ramp of %s a second from %s, which turned at %s", perSecond, fuzzRamp, turn)
}

// highestTurn is the highest level that demand has risen to and fallen from by at least as much.
func highestTurn(all []memory.Bytes, by memory.Bytes) (turn memory.Bytes) {
	least, highest := memory.Max, memory.Bytes(0) // the highest since the least, if that is high enough above it
	for _, d := range all {
		least = min(least, d)
		if d.Minus(least) >= by {
			highest = max(highest, d)
		}
		if highest.Minus(d) >= by {
			turn = max(turn, highest)
		}
	}
	return turn
}

func BenchmarkWatch(b *testing.B) {
	var w Watch
	b.ReportAllocs()
	for i := range b.N {
		at := time.Duration(i) * often
		w.Add(Sample{start.Add(at), 300*mib + memory.Bytes(i%200)*mib, 512 * mib})
		w.Due(512*mib, 0, 425*time.Millisecond)
	}
}
