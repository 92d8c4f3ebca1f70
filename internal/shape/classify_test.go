// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/budget"
)

const mib = float64(memory.MiB)

// t0 is when everything in these tests begins.
var t0 = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

// curve is memory in MiB as a function of the hours since the start.
type curve func(hours float64) float64

// sampled is one instance seen every interval, with a little noise that is the same in every run.
func sampled(pod string, span, interval time.Duration, f curve) Instance {
	noise := rand.New(rand.NewPCG(uint64(len(pod)), 7))
	in := Instance{Container: memory.ContainerRef{Namespace: "shop", Pod: pod, Container: "app"}, Started: t0}
	for at := interval; at <= span; at += interval {
		rss := f(at.Hours()) * (1 + 0.01*(noise.Float64()-0.5))
		in.Points = append(in.Points, Point{Time: t0.Add(at), RSS: toBytes(rss * mib)})
	}
	return in
}

func steps(from float64, at ...float64) curve { // at: hour, MiB, hour, MiB ...
	return func(h float64) float64 {
		for i := 0; i < len(at); i += 2 {
			if h >= at[i] {
				from = max(from, at[i+1])
			}
		}
		return from
	}
}

// article1 is the graph of the first article: 230, a jump to 400 at 18:30, 310, a jump to 640 at 20:00.
func article1(h float64) float64 {
	switch {
	case h < 6.5:
		return 230
	case h < 7:
		return 400
	case h < 8:
		return 310
	default:
		return 640
	}
}

func teeth(low, high, hours float64) curve {
	return func(h float64) float64 { return low + (high-low)*math.Mod(h, hours)/hours }
}

func bumps(low, high, every, length float64) curve {
	return func(h float64) float64 {
		if math.Mod(h, every) > every-length {
			return high
		}
		return low
	}
}

func fills(from, by, tau float64) curve {
	return func(h float64) float64 { return from + by*(1-math.Exp(-h/tau)) }
}

func leaks(from, perHour float64) curve { return func(h float64) float64 { return from + perHour*h } }

func plus(a, b curve) curve { return func(h float64) float64 { return a(h) + b(h) } }

func ramp(from, to, hours float64) curve {
	return func(h float64) float64 { return min(to, from+(to-from)*h/hours) }
}

func TestClassify(t *testing.T) {
	const limit = 1024 * memory.MiB
	for name, tc := range map[string]struct {
		f    curve
		span time.Duration // 24h unless said
		cap  memory.Bytes
		want Kind
		says string
	}{
		"flat":                                 {f: leaks(200, 0), want: Flat, says: "stays at "},
		"a JIT that warms up for half an hour": {f: fills(90, 120, 0.5), want: Flat},
		"a cache that fills for six hours":     {f: fills(150, 400, 3), want: Flat, says: "levels off at 5"},
		"a cache after half of its time":       {f: fills(150, 400, 3), span: 8 * time.Hour, want: Flat},
		"teeth: the trough is the live set":    {f: teeth(200, 400, 1), want: Sawtooth, says: "the live set is 20"},
		"slow teeth":                           {f: teeth(200, 400, 5), want: Sawtooth},
		"the time of day": {
			f: func(h float64) float64 { return 300 - 100*math.Cos(h*math.Pi/12) }, span: 72 * time.Hour, want: Sawtooth,
		},
		"bursts that come down": {f: bumps(200, 600, 4, 0.5), want: Burst, says: "peaks to 60"},
		"article 1: two jumps that stay": {
			f: article1, span: 12 * time.Hour, want: StepRetention, says: "and stays there",
		},
		"three jumps": {
			f: steps(230, 6, 350, 12, 500, 18, 640), want: StepRetention, says: "jumped 3 times",
		},
		"article 4: glibc grows slowly": {
			f: plus(leaks(400, 4), teeth(0, 30, 0.5)), span: 72 * time.Hour, want: Climb, says: "a day without slowing down",
		},
		"a leak below teeth":     {f: plus(leaks(200, 10), teeth(0, 80, 0.7)), want: Climb},
		"a leak below bursts":    {f: plus(leaks(200, 10), bumps(0, 200, 3, 0.3)), want: Climb},
		"a leak after a warm-up": {f: plus(fills(150, 100, 0.5), leaks(0, 8)), want: Climb},
		"a heap that fills its cap": {
			f: ramp(100, 560, 2), cap: 576 * memory.MiB, want: FollowsLimit, says: "use, not demand",
		},
		"the same rise when no cap is known": {f: ramp(100, 560, 2), want: Flat},
		"a leak in a runtime with a cap":     {f: leaks(200, 10), cap: 900 * memory.MiB, want: Climb},
		"an hour of growth is too little":    {f: leaks(200, 40), span: time.Hour, want: Unknown, says: "too short"},
		"an hour of growth that hits the limit": {
			f: leaks(400, 550), span: time.Hour, want: Climb, says: "reaches the limit in",
		},
		"filling towards a known cap is no leak": {f: leaks(400, 450), span: time.Hour, cap: 900 * memory.MiB, want: Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			span := tc.span
			if span == 0 {
				span = 24 * time.Hour
			}
			in := Input{
				Instances: []Instance{sampled("web-1", span, time.Minute, tc.f)}, Limit: limit, Cap: tc.cap,
			}
			got := Classify(in)
			if got.Kind != tc.want {
				t.Fatalf("got %s (%s), want %s", got.Kind, got.Summary, tc.want)
			}
			if !strings.Contains(got.Summary, tc.says) {
				t.Errorf("summary %q does not say %q", got.Summary, tc.says)
			}
			worse := in
			worse.Instances = []Instance{shaken(in.Instances[0])}
			if again := Classify(worse); again.Kind != tc.want {
				t.Errorf(
					"with points shuffled, doubled and a sixth of them missing: %s (%s), want %s", again.Kind, again.Summary, tc.want,
				)
			}
		})
	}
}

// shaken is the same instance as an unreliable source would report it: in disorder, some points twice, some missing,
// two hours in one gap (or a twelfth of a shorter window).
func shaken(in Instance) Instance {
	r := rand.New(rand.NewPCG(1, 2))
	points := slices.Clone(in.Points)
	n := len(points)
	gap := min(n/12, 120)
	points = slices.Delete(points, n/2, n/2+gap)
	points = slices.DeleteFunc(points, func(Point) bool { return r.IntN(12) == 0 })
	points = append(points, points[:len(points)/10]...)
	r.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	in.Points = points
	return in
}

func TestClimbNumbers(t *testing.T) {
	in := Input{
		Instances: []Instance{sampled("web-1", 24*time.Hour, time.Minute, leaks(200, 10))}, Limit: 1024 * memory.MiB,
	}
	got := Classify(in)
	if rate := got.RatePerDay.MiB(); rate < 230 || rate > 250 {
		t.Errorf("rate is %d MiB a day, want 240 within 4 %%", rate)
	}
	wantHours := (1024.0 - 440) / 10
	if lo, hi := got.TimeToLimit[0].Hours(), got.TimeToLimit[1].Hours(); lo > wantHours || hi < wantHours ||
		hi > 1.4*wantHours {
		t.Errorf("time to limit is %.0f to %.0f hours, want an interval around %.0f", lo, hi, wantHours)
	}
	if got.Confidence != memory.High {
		t.Errorf("confidence is %s after a day of steady growth", got.Confidence)
	}
}

func TestTimeToLimitIsAbsentWithoutALimit(t *testing.T) {
	got := Classify(Input{Instances: []Instance{sampled("web-1", 24*time.Hour, time.Minute, leaks(200, 10))}})
	if got.Kind != Climb || got.TimeToLimit != [2]time.Duration{} {
		t.Errorf("got %s, time to limit %v", got.Kind, got.TimeToLimit)
	}
}

func TestStepsAreNamedWithTheirSize(t *testing.T) {
	got := Classify(
		Input{Instances: []Instance{sampled("web-1", 12*time.Hour, time.Minute, steps(230, 4, 330, 9, 640))}},
	)
	if len(got.Steps) != 2 {
		t.Fatalf("got %d steps, want 2: %+v", len(got.Steps), got.Steps)
	}
	for i, want := range []float64{100, 310} {
		if by := float64(got.Steps[i]) / mib; math.Abs(by-want) > 0.1*want {
			t.Errorf("step %d: %.0f MiB, want %.0f", i, by, want)
		}
	}
}

// TestOutlierReplica is the first article: sixty pods at 330 MiB and one at 640.
func TestOutlierReplica(t *testing.T) {
	pods := func(n int, f func(i int) float64) []Replica {
		var out []Replica
		for i := range n {
			out = append(out, Replica{fmt.Sprintf("websocket-%d", i), toBytes(f(i) * mib)})
		}
		return out
	}
	usual := func(i int) float64 { return 330 + float64(i%7)*4 }
	for name, tc := range map[string]struct {
		replicas []Replica
		want     []string
	}{
		"one at 640 among sixty at 330": {pods(61, func(i int) float64 {
			if i == 42 {
				return 640
			}
			return usual(i)
		}), []string{"websocket-42"}},
		"all alike": {pods(60, usual), nil},
		"two, the higher first": {pods(20, func(i int) float64 {
			return usual(i) + map[int]float64{3: 300, 7: 400}[i]
		}), []string{"websocket-7", "websocket-3"}},
		"two of three: nobody knows which is odd": {pods(3, func(i int) float64 { return 330 + 300*float64(i/2) }), nil},
		"half and half are two kinds of pods":     {pods(10, func(i int) float64 { return 330 + 300*float64(i%2) }), nil},
		"small things differ by half easily":      {pods(10, func(i int) float64 { return 10 + 10*float64(i/9) }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Classify(Input{Replicas: tc.replicas}).Outliers
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAReplicaInABurstIsNoOutlier(t *testing.T) {
	in := Input{}
	for i := range 8 {
		f := leaks(200, 0)
		if i == 5 {
			f = bumps(200, 700, 1, 0.05)
		}
		in.Instances = append(in.Instances, sampled(fmt.Sprintf("web-%d", i), 6*time.Hour, time.Minute, f))
	}
	if got := Classify(in); len(got.Outliers) > 0 {
		t.Errorf("named %v", got.Outliers)
	}
}

func TestRetainingReplicaGivesTheShape(t *testing.T) {
	in := Input{}
	for i := range 8 {
		f := leaks(200, 0)
		if i == 5 {
			f = steps(200, 3, 330, 6, 520)
		}
		in.Instances = append(in.Instances, sampled(fmt.Sprintf("web-%d", i), 12*time.Hour, time.Minute, f))
	}
	got := Classify(in)
	if got.Kind != StepRetention || !slices.Equal(got.Outliers, []string{"web-5"}) ||
		!slices.Equal(got.Pods, got.Outliers) || !strings.Contains(got.Summary, "web-5") {
		t.Errorf("got %s, outliers %v: %s", got.Kind, got.Outliers, got.Summary)
	}
}

func TestFollowsALimitThatWasRaised(t *testing.T) {
	later := func(in Instance, by time.Duration) Instance {
		in.Started = in.Started.Add(by)
		for i := range in.Points {
			in.Points[i].Time = in.Points[i].Time.Add(by)
		}
		return in
	}
	before := sampled("web-1", 6*time.Hour, time.Minute, leaks(200, 0))
	after := later(sampled("web-1", 6*time.Hour, time.Minute, leaks(310, 0)), 7*time.Hour)
	inPlace := before
	inPlace.Points = slices.Concat(before.Points, after.Points)
	same := later(sampled("web-1", 6*time.Hour, time.Minute, leaks(200, 0)), 7*time.Hour)

	for name, tc := range map[string]struct {
		instances []Instance
		peak      memory.Bytes
		want      Kind
	}{
		"restarted with a higher limit, and it fills that too": {[]Instance{before, after}, 310 * memory.MiB, FollowsLimit},
		"resized in place, and it fills that too":              {[]Instance{inPlace}, 310 * memory.MiB, FollowsLimit},
		"restarted with a higher limit, and it needs no more":  {[]Instance{before, same}, 200 * memory.MiB, Flat},
	} {
		t.Run(name, func(t *testing.T) {
			regimes := []history.Regime{
				{Limit: 400 * memory.MiB, Peak: tc.peak}, {Limit: 256 * memory.MiB, Peak: 200 * memory.MiB},
			}
			got := Classify(Input{Instances: tc.instances, Regimes: regimes, Limit: 400 * memory.MiB})
			if got.Kind != tc.want {
				t.Errorf("got %s (%s), want %s", got.Kind, got.Summary, tc.want)
			}
		})
	}
}

// TestDiedClimbing: three instances of four hours each, every one from 60 MiB to the limit.
func TestDiedClimbing(t *testing.T) {
	var in Input
	in.Limit = 256 * memory.MiB
	for life := range 3 {
		i := sampled("web-1", 4*time.Hour, time.Minute, plus(leaks(60, 48), teeth(0, 10, 0.3)))
		shift := time.Duration(life) * 4 * time.Hour
		i.Started = i.Started.Add(shift)
		for p := range i.Points {
			i.Points[p].Time = i.Points[p].Time.Add(shift)
		}
		in.Instances = append(in.Instances, i)
	}
	if got := Classify(in); got.Kind != Climb || got.Confidence == memory.Low {
		t.Errorf("got %s, %s (%s)", got.Kind, got.Confidence, got.Summary)
	}
}

// spans are the past as a history has it: f is what was used, in MiB, h hours after t0.
func spans(n int, length time.Duration, f func(h float64) float64) []history.Span {
	var past []history.Span
	for i := range n {
		start := time.Duration(i) * length
		from, to := f(start.Hours()), f((start + length).Hours())
		past = append(past, history.Span{
			Start: t0.Add(start), Length: length, Low: toBytes(min(from, to) * mib), Usual: toBytes((from + to) / 2 * mib),
			Peak: toBytes(max(from, to) * mib),
		})
	}
	return past
}

func TestThePastRemembersWhatMinutesForgot(t *testing.T) {
	in := Input{Past: spans(96, time.Hour, func(h float64) float64 { return 200 + 2*h + 5*float64(int(h)%3) })}
	in.Instances = []Instance{{Points: sampled("", time.Hour, time.Minute, leaks(400, 2)).Points}}
	got := Classify(in)
	if got.Kind != Climb || got.Confidence != memory.High {
		t.Errorf("got %s, %s: %s", got.Kind, got.Confidence, got.Summary)
	}
	if rate := got.RatePerDay.MiB(); rate < 44 || rate > 52 {
		t.Errorf("rate is %d MiB a day, want 48", rate)
	}
}

func TestAMorningsRiseIsNoClimbWhenYesterdayHadOne(t *testing.T) {
	day := func(h float64) float64 { return 300 - 150*math.Cos(h*math.Pi/12) }
	in := Input{Past: spans(60, time.Hour, day)}
	if got := Classify(in); got.Kind == Climb || got.Kind == StepRetention {
		t.Errorf("got %s: %s", got.Kind, got.Summary)
	}
}

func TestALeakThatWasMendedIsToldUntilTheNewReleaseIsKnown(t *testing.T) {
	const released = 60 // spans, a day
	past := spans(released, 24*time.Minute, leaks(200, 10))
	for i, s := range spans(30, 24*time.Minute, func(float64) float64 { return 200 }) {
		s.Start, s.Another = s.Start.Add(24*time.Hour), i == 0
		past = append(past, s)
	}
	for _, tc := range []struct {
		after time.Duration
		want  Kind
	}{{2 * time.Hour, Climb}, {6 * time.Hour, Flat}} {
		known := past[:released+int(tc.after/(24*time.Minute))]
		end := known[len(known)-1].Start
		minutes := sampled("", min(tc.after, 2*time.Hour), time.Minute, func(float64) float64 { return 200 })
		for i := range minutes.Points {
			minutes.Points[i].Time = end.Add(-2*time.Hour + time.Duration(i)*time.Minute)
		}
		if got := Classify(Input{Past: known, Instances: []Instance{minutes}}); got.Kind != tc.want {
			t.Errorf("%s after the release: %s, want %s (%s)", tc.after, got.Kind, tc.want, got.Summary)
		}
	}
}

func TestWhatFillsEverMoreSlowlyDoesNotJump(t *testing.T) {
	fills := func(h float64) float64 { return 30 + 80*(1-math.Exp(-h/1.5)) }
	if got := Classify(Input{Past: spans(48, 15*time.Minute, fills)}); got.Kind != Flat {
		t.Errorf("got %s: %s", got.Kind, got.Summary)
	}
}

func TestASmallWobbleIsNoBurst(t *testing.T) {
	wobbles := func(h float64) float64 {
		if int(h*4)%16 == 7 {
			return 121
		}
		return 105
	}
	if got := Classify(Input{Past: spans(64, 15*time.Minute, wobbles)}); got.Kind != Flat && got.Kind != Sawtooth {
		t.Errorf("got %s: %s", got.Kind, got.Summary)
	}
}

func TestTooLittleIsUnknownAndSaysSo(t *testing.T) {
	for _, in := range []Input{
		{}, {Instances: []Instance{{}}}, {Instances: []Instance{sampled("web-1", 3*time.Minute, time.Minute, leaks(100, 0))}},
	} {
		if got := Classify(in); got.Kind != Unknown || got.Confidence != memory.Low || got.Summary == "" {
			t.Errorf("got %+v", got)
		}
	}
}

func TestTooLittleCountsSamplesOnce(t *testing.T) {
	in := Input{
		Instances: []Instance{sampled("web-1", 5*time.Minute, time.Minute, leaks(100, 0))},
		Past:      spans(1, 6*time.Minute, leaks(100, 0)),
	}
	if got := Classify(in).Summary; got != "5 samples are too few to classify memory over time" {
		t.Errorf("got %q", got)
	}
}

// classifyBudget is what naming a shape may take, per moment that was measured: series of the points of all instances
// and of the past, cut and compared in several ways. As many moments as a history holds took 0.8 ms and 190 KiB.
var classifyBudget = budget.Budget{Bytes: 256 << 10, PerByte: 4 << 10, CPU: time.Second}

// FuzzClassify: whatever was measured, there is an answer within the budget, and no number in it is absurd.
func FuzzClassify(f *testing.F) {
	f.Add([]byte{10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120}, uint16(60), int64(200))
	f.Add([]byte{0, 255, 0, 255, 0, 255, 0, 255, 0, 255}, uint16(0), int64(0))
	f.Fuzz(func(t *testing.T, values []byte, interval uint16, limit int64) {
		// a history, which all of it comes from, holds no more
		values = values[:min(len(values), max(history.PointsKept, history.SpansKept))]
		in := Input{Limit: memory.Bytes(limit), Cap: memory.Bytes(limit / 2)}
		var one Instance
		for i, v := range values {
			at := t0.Add(time.Duration(i*int(interval)) * time.Second)
			one.Points = append(
				one.Points, Point{Time: at, RSS: memory.Bytes(v) << 20},
			)
			in.Past = append(in.Past, history.Span{
				Start: at, Length: time.Duration(interval) * time.Second, Low: memory.Bytes(v/2) << 20,
				Usual: memory.Bytes(v) << 20,
				Peak:  memory.Bytes(v) << 21, Another: v == 0,
			})
		}
		in.Instances = []Instance{one, one}
		var got Shape
		budget.Check(t, classifyBudget, len(values), func() { got = Classify(in) })
		if got.RatePerDay < 0 || got.TimeToLimit[0] < 0 || got.TimeToLimit[1] < got.TimeToLimit[0] || got.Trough < 0 ||
			len(got.Steps) > stepsKept {
			t.Errorf("%+v", got)
		}
	})
}

func BenchmarkClassify(b *testing.B) {
	in := Input{
		Instances: []Instance{sampled("web-1", 24*time.Hour, 15*time.Minute, plus(leaks(200, 10), teeth(0, 80, 0.7)))},
		Limit:     1 << 30,
	}
	for b.Loop() {
		Classify(in)
	}
}

// TestAFastLeakIsToldBeforeItsKill: one pod, 10 MiB a minute, limit 512Mi, read every 15 s through memfit's own
// history.
func TestAFastLeakIsToldBeforeItsKill(t *testing.T) {
	const limit = 512 * memory.MiB
	h := history.New()
	ref := memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "u1", Container: "app"}
	for at := 15 * time.Second; ; at += 15 * time.Second {
		rss := toBytes((100 + 10*at.Minutes()) * mib)
		if rss >= limit {
			t.Fatal("killed before anything was said")
		}
		h.Add(memory.Sample{Container: ref, Time: t0.Add(at), Started: t0, RSS: rss, HasRSS: true, WorkingSet: rss}, limit)
		in := FromHistory(h)
		in.Limit = limit
		if got := Classify(in); got.Kind == Climb {
			if got.Confidence == memory.Low {
				t.Errorf("confidence is %s: nobody acts on that", got.Confidence)
			}
			t.Logf("told after %s at %s: %s", at, rss, got.Summary)
			return
		}
	}
}
