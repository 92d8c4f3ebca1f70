// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/budget"
)

const mib = memory.MiB

var start = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func sampleOf(pod string, at time.Time, use memory.Bytes) memory.Sample {
	return memory.Sample{
		Container: memory.ContainerRef{Namespace: "shop", Pod: pod, UID: types.UID("uid-" + pod), Container: "web"},
		Time:      at, Started: start.Add(-time.Hour), RSS: use, HasRSS: true, WorkingSet: use, Exact: true,
	}
}

// busy fills a history with a month of a workload of some replicas whose use wanders.
func busy(seed uint64, replicas int, days int) *Container {
	c, r := New(), rand.New(rand.NewPCG(seed, 1))
	base := memory.Bytes(50+r.IntN(4000)) * mib
	for at := start; at.Before(start.AddDate(0, 0, days)); at = at.Add(10 * time.Minute) {
		for i := range replicas {
			c.Add(
				sampleOf(fmt.Sprint("pod-", i), at.Add(time.Duration(i)*time.Second), base.Percent(int32(60+r.IntN(60)))), 2*base,
			)
		}
	}
	return c
}

func TestDaysKeepPeaksAndTroughsForAMonth(t *testing.T) {
	c := New()
	for d := range 50 {
		for m := 0; m < 24*60; m += 10 {
			use := memory.Bytes(100+d) * mib
			if m == 600 {
				use = memory.Bytes(1000+d) * mib
			}
			c.Add(sampleOf("web-1", start.AddDate(0, 0, d).Add(time.Duration(m)*time.Minute), use), 0)
		}
	}
	days := c.Days()
	if len(days) != DaysKept {
		t.Fatalf("%d days, want %d", len(days), DaysKept)
	}
	for i, got := range days {
		d := 50 - DaysKept + i
		want := Day{start.AddDate(0, 0, d), memory.Bytes(1000+d) * mib, memory.Bytes(100+d) * mib}
		if i == len(days)-1 {
			want.Trough = got.Trough // its last hour is not over
		}
		if got.Start != want.Start || !near(got.Peak, want.Peak) || !near(got.Trough, want.Trough) {
			t.Errorf("day %d: %v, want %v", i, got, want)
		}
	}
}

// near allows for the rounding of a code, 0.05 %.
func near(a, b memory.Bytes) bool { return a-b <= b/2000+1 && b-a <= b/2000+1 }

func TestDuplicatesAndStragglers(t *testing.T) {
	once, twice := New(), New()
	for m := range 300 {
		s := sampleOf("web-1", start.Add(time.Duration(m)*time.Minute), memory.Bytes(100+m%37)*mib)
		once.Add(s, 0)
		twice.Add(s, 0)
		twice.Add(s, 0)
	}
	if diff := cmp.Diff(encoded(t, once), encoded(t, twice)); diff != "" {
		t.Errorf("a duplicate changed something: %s", diff)
	}
	before := len(once.Days())
	once.Add(sampleOf("web-2", start.Add(-20*time.Hour), 900*mib), 0)
	if days := once.Days(); len(days) != before+1 || !near(days[0].Peak, 900*mib) {
		t.Errorf("a straggler of yesterday is not in its day: %v", days)
	}
	once.Add(sampleOf("web-2", start.AddDate(0, 0, -40), 5000*mib), 0)
	if got := once.HighestDay(); !near(got, 900*mib) {
		t.Errorf("a sample from before the days kept counts: highest %s", got)
	}
}

func TestNothingSeenIsNotUse(t *testing.T) {
	c := New()
	c.Add(memory.Sample{Time: start}, 0)
	if c.Samples() != 0 {
		t.Error("a sample without any value was counted")
	}
	c.Add(memory.Sample{Time: start, HasRSS: true}, 0)
	if c.Samples() != 1 {
		t.Error("an idle process was not counted")
	}
}

func TestTroughIsTheLiveSetNotTheStart(t *testing.T) {
	c := New()
	for m := 0; m < 24*60; m += 5 { // a collector that comes by every two hours: 300Mi alive, up to 700Mi used
		use := 300*mib + memory.Bytes(m%120)*400*mib/120
		if m < 5 {
			use = 20 * mib // the process has just started
		}
		s := sampleOf("web-1", start.Add(time.Duration(m)*time.Minute), use)
		s.Started = start
		c.Add(s, 1024*mib)
	}
	if got := c.Trough(); !near(got, 300*mib) {
		t.Errorf("trough %s, want 300Mi", got)
	}
}

func TestOneHighReplicaAmongManyIsThePeak(t *testing.T) {
	c := New()
	for i := range 200 {
		c.Add(sampleOf(fmt.Sprint("pod-", i), start, 100*mib), 0)
	}
	c.Add(sampleOf("pod-199", start.Add(time.Minute), 640*mib), 0)
	if got := c.HighestDay(); !near(got, 640*mib) {
		t.Errorf("highest %s, want 640Mi", got)
	}
}

func TestRecentKeepsSampleResolution(t *testing.T) {
	c := New()
	for m := 0; m < 300; m += 2 {
		c.Add(sampleOf("web-1", start.Add(time.Duration(m)*time.Minute), memory.Bytes(100+m)*mib), 0)
	}
	points := c.Recent()
	if len(points) != PointsKept {
		t.Fatalf("%d points, want %d", len(points), PointsKept)
	}
	for i, p := range points {
		m := 300 - 2*(PointsKept-i)
		if want := start.Add(time.Duration(m) * time.Minute); p.Time != want || !near(p.Demand, memory.Bytes(100+m)*mib) {
			t.Fatalf("point %d: %v, want %s at %s", i, p, memory.Bytes(100+m)*mib, want)
		}
	}
	c.Restarted(sampleOf("web-1", start, 0).Container, start.Add(5*time.Hour))
	c.Add(sampleOf("web-1", start.Add(5*time.Hour+time.Minute), 50*mib), 0)
	points = c.Recent()
	if a, b := points[len(points)-2], points[len(points)-1]; a.Instance == b.Instance {
		t.Error("after a restart the instance number is the same")
	}
}

func TestARestartOfTheOperatorForgetsNothing(t *testing.T) {
	whole, parts := New(), New()
	r := rand.New(rand.NewPCG(7, 7))
	for m := range 4 * 24 * 60 {
		s := sampleOf(fmt.Sprint("pod-", m%4), start.Add(time.Duration(m)*time.Minute), memory.Bytes(100+r.IntN(300))*mib)
		whole.Add(s, 512*mib)
		parts.Add(s, 512*mib)
		if m%97 == 0 { // in the middle of windows
			restored := New()
			if err := restored.UnmarshalBinary(encoded(t, parts)); err != nil {
				t.Fatal(err)
			}
			parts = restored
		}
	}
	if diff := cmp.Diff(encoded(t, whole), encoded(t, parts)); diff != "" {
		t.Errorf("59 restarts later (-whole +restarted):\n%s", diff)
	}
}

func TestUnmarshalRefusesWhatItDoesNotKnow(t *testing.T) {
	good := encoded(t, busy(1, 2, 3))
	c := busy(2, 1, 2)
	before := encoded(t, c)
	impossible := busy(1, 1, 1)
	impossible.past.width = 0
	late, early, last := busy(1, 1, 1), busy(1, 1, 1), busy(1, 1, 1)
	late.regime.since, early.before.since, last.hour = math.MaxInt32, -1, math.MaxInt32
	unused := New()
	unused.before.since = 7
	for name, data := range map[string][]byte{
		"a limit from the end of time": encoded(t, late), "a limit before 1970": encoded(t, early),
		"an hour at the end of its type": encoded(t, last), "a limit without a sample": encoded(t, unused),
		"spans without a length": encoded(t, impossible),
		"empty":                  {}, "a factor of 7": append([]byte{7}, good[1:]...), "cut": good[:len(good)/2],
		"longer": append(bytes.Clone(good), 0),
	} {
		if err := c.UnmarshalBinary(data); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if !bytes.Equal(before, encoded(t, c)) {
		t.Error("damaged input changed the history")
	}
}

// TestSharedMemoryIsDemand: 21Mi RSS and 73Mi in /dev/shm were remembered as 37Mi.
func TestSharedMemoryIsDemand(t *testing.T) {
	c := New()
	for m := range 26 * 60 {
		s := sampleOf("db-0", start.Add(time.Duration(m)*time.Minute), 21*mib)
		s.WorkingSet = 130 * mib // with page cache
		c.Add(s.WithDemand(94*mib), 256*mib)
	}
	for _, c := range []*Container{c, decoded(t, encoded(t, c))} {
		if !near(c.HighestDay(), 94*mib) || !near(c.Trough(), 94*mib) || !near(c.Quantile(0.5), 94*mib) &&
			c.Quantile(0.5) < 94*mib || c.Certainty(24*time.Hour) != Exact {
			t.Errorf("peak %s, trough %s, usual %s, certainty %d; want 94Mi, exact", c.HighestDay(), c.Trough(),
				c.Quantile(0.5), c.Certainty(24*time.Hour))
		}
	}
}

func TestCertainty(t *testing.T) {
	const day = 24 * time.Hour
	exact := func(s memory.Sample) memory.Sample { s.Exact = true; return s }
	workingSet := func(s memory.Sample) memory.Sample { s.RSS, s.HasRSS, s.Exact = 0, false, false; return s }
	rss := func(s memory.Sample) memory.Sample { s.Exact = false; return s }
	young := func(s memory.Sample) memory.Sample { s.Exact, s.Started = false, s.Time.Add(-time.Minute); return s }
	type hour struct {
		at int
		as func(memory.Sample) memory.Sample
	}
	for name, test := range map[string]struct {
		hours []hour
		want  Certainty
	}{
		"exact":                               {[]hour{{0, exact}, {30, exact}}, Exact},
		"RSS only":                            {[]hour{{0, rss}, {30, rss}}, RSSOnly},
		"working set only":                    {[]hour{{0, workingSet}, {30, workingSet}}, WorkingSetOnly},
		"one replica without":                 {[]hour{{0, exact}, {10, rss}, {30, exact}}, RSSOnly},
		"one without, more than a day ago":    {[]hour{{0, exact}, {3, rss}, {30, exact}}, Exact},
		"the first minutes of an instance":    {[]hour{{0, exact}, {29, young}, {30, exact}}, Exact},
		"nothing but first minutes":           {[]hour{{0, young}, {30, young}}, Unknown},
		"a source that fell back in the end":  {[]hour{{0, exact}, {30, workingSet}}, WorkingSetOnly},
		"exact more than a day ago, then few": {[]hour{{0, exact}, {30, young}}, Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			c := New()
			for _, h := range test.hours {
				c.Add(h.as(sampleOf("web-1", start.Add(time.Duration(h.at)*time.Hour), 21*mib)), 0)
			}
			for _, c := range []*Container{c, decoded(t, encoded(t, c))} {
				if got := c.Certainty(day); got != test.want {
					t.Errorf("certainty %d, want %d", got, test.want)
				}
			}
		})
	}
}

// TestWhatIsSwappedOutIsDemand: on a node, a reclaim of 50M took the RSS of a container to 15 MB and put 54 MB into
// swap.
func TestWhatIsSwappedOutIsDemand(t *testing.T) {
	c := New()
	for m := range 120 {
		s := sampleOf("web-1", start.Add(time.Duration(m)*time.Minute), 15*mib)
		s.WorkingSet, s.Swap = 15*mib, 54*mib
		c.Add(s, 128*mib)
	}
	for _, c := range []*Container{c, decoded(t, encoded(t, c))} {
		if !near(c.HighestDay(), 69*mib) || !near(c.PeakRSS(), 15*mib) || !near(c.PeakSwap(), 54*mib) {
			t.Errorf("peak %s, RSS %s, swap %s; want 69Mi, 15Mi, 54Mi", c.HighestDay(), c.PeakRSS(), c.PeakSwap())
		}
	}
}

func decoded(t *testing.T, data []byte) *Container {
	t.Helper()
	c := New()
	if err := c.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	return c
}

func FuzzUnmarshalBinary(f *testing.F) {
	swapping := busy(3, 1, 1)
	swapping.peakSwap, swapping.peakSwapDay = encode(54*mib), lowDay(swapping.day)
	fast := busy(4, 2, 2)
	fast.factor = 144
	for _, c := range []*Container{New(), busy(1, 1, 1), busy(2, 9, 20), swapping, fast} {
		data, err := c.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := New()
		var err error
		budget.Check(
			t, budget.Budget{Bytes: 64 << 10, PerByte: 64, CPU: time.Second}, len(data),
			func() { err = c.UnmarshalBinary(data) },
		)
		if err != nil {
			return
		}
		again := encoded(t, c)
		twice := New()
		if err := twice.UnmarshalBinary(again); err != nil {
			t.Fatalf("what was read and written cannot be read: %v", err)
		}
		if !bytes.Equal(again, encoded(t, twice)) {
			t.Error("written twice, two encodings")
		}
		// Whatever was read must bear use.
		c.Recent()
		c.Days()
		c.AppendHours(nil)
		c.AppendSpans(nil)
		c.Regimes()
		c.Quantile(0.9)
		c.Add(sampleOf("web-1", c.Last().Add(time.Minute), mib), mib)
		c.Add(sampleOf("web-1", start, mib), mib)
		c.Trough()
	})
}

func encoded(t *testing.T, c *Container) []byte {
	t.Helper()
	data, err := c.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestEncodingStaysSmall(t *testing.T) {
	for _, c := range []struct{ replicas, days, most int }{{1, 1, 1000}, {3, 9, 1200}, {30, 40, 1300}} {
		if got := len(encoded(t, busy(3, c.replicas, c.days))); got < 100 || got > c.most {
			t.Errorf("%d replicas, %d days of noise: %d bytes, want up to %d", c.replicas, c.days, got, c.most)
		}
	}
}

// BenchmarkHistory prints what a history costs: bytes encoded in a checkpoint and bytes live on the heap.
func BenchmarkHistory(b *testing.B) {
	const n = 10_000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		all := make([]*Container, n)
		encodedBytes := 0
		for i := range all {
			c := New()
			for d := range 35 * 4 {
				c.Add(sampleOf("web-1", start.Add(time.Duration(d)*6*time.Hour), memory.Bytes(100+(i+d)%50)*mib), 512*mib)
			}
			for m := range 120 {
				c.Add(
					sampleOf("web-1", start.AddDate(0, 0, 35).Add(time.Duration(m)*time.Minute), memory.Bytes(100+m%20)*mib), 512*mib,
				)
			}
			data, err := c.MarshalBinary()
			if err != nil {
				b.Fatal(err)
			}
			encodedBytes += len(data)
			all[i] = c
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "heap-B/container")
		b.ReportMetric(float64(encodedBytes)/n, "encoded-B/container")
		runtime.KeepAlive(all)
	}
}

func BenchmarkAdd(b *testing.B) {
	c := busy(1, 3, 2)
	at := c.Last()
	for b.Loop() {
		at = at.Add(10 * time.Second)
		c.Add(sampleOf("pod-1", at, 300*mib), 512*mib)
	}
}

func TestNewPodsShowWhatAStartNeeds(t *testing.T) {
	c, day, minute := New(), 24*time.Hour, time.Minute
	run := func(pod string, started time.Time, uses map[time.Duration]memory.Bytes) {
		for _, age := range slices.Sorted(maps.Keys(uses)) {
			s := sampleOf(pod, started.Add(age), uses[age]*mib)
			s.Started = started
			c.Add(s, 0)
		}
	}
	want := func(want memory.Bytes, when string) {
		t.Helper()
		if got := c.PeakStart(); want == 0 && got != 0 || !near(got, want*mib) {
			t.Errorf("%s: a start needs %s, want %dMi", when, got, want)
		}
	}
	run("a", start, map[time.Duration]memory.Bytes{minute: 200, 9 * minute: 300, 10 * minute: 250, 59 * minute: 260})
	want(0, "within the first hour")
	run("a", start, map[time.Duration]memory.Bytes{60 * minute: 290})
	want(300, "after it")
	run("b", start.Add(day), map[time.Duration]memory.Bytes{minute: 400, 11 * minute: 380, 60 * minute: 380})
	want(300, "a pod that keeps its memory")
	run("c", start.Add(2*day), map[time.Duration]memory.Bytes{minute: 100, 11 * minute: 50, 60 * minute: 50})
	want(300, "a smaller start")
	c.Restarted(sampleOf("c", start, 0).Container, start.Add(3*day))
	run("c", start.Add(3*day), map[time.Duration]memory.Bytes{minute: 900, 11 * minute: 50, 60 * minute: 50})
	want(300, "the next process of a pod, which may have been killed under load")
	run("c", start.Add(3*day), map[time.Duration]memory.Bytes{31 * day: 50})
	want(300, "after 34 days")
	run("c", start.Add(3*day), map[time.Duration]memory.Bytes{32 * day: 50})
	want(0, "after 35 days")
	run("d", start.Add(36*day), map[time.Duration]memory.Bytes{minute: 150, 11 * minute: 50, 60 * minute: 50})
	want(150, "a start after that")

	cached := sampleOf("e", start.Add(37*day), 0)
	cached.Started, cached.HasRSS, cached.Exact, cached.WorkingSet = cached.Time, false, false, 900*mib
	c.Add(cached, 0)
	run("e", cached.Time, map[time.Duration]memory.Bytes{minute: 80, 11 * minute: 50, 60 * minute: 50})
	want(150, "a start that read files, before the first reading without their page cache")
}
