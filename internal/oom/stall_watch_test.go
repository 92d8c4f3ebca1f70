// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
)

// life is a container as the kubelet samples it, every 15 s.
type life struct {
	watch  StallWatch
	sample memory.Sample
	limit  memory.Bytes
	high   memory.Bytes
	found  []memory.Stall // as they became known or ended, one after the other
	every  time.Duration
	before memory.Sample
	waited time.Duration // since the sample before
}

var lifeBegan = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

func newLife(limit memory.Bytes) *life {
	return &life{limit: limit, every: 15 * time.Second, sample: memory.Sample{
		Container: memory.ContainerRef{Namespace: "shop", Pod: "web-0", UID: "u1", Container: "app"},
		Time:      lifeBegan, Started: lifeBegan, HasRSS: true, Exact: true, HasMajorFaults: true,
	}}
}

// use goes on for so long with so much anonymous memory and page cache, and so many major faults a second.
func (l *life) use(d time.Duration, anon, cache memory.Bytes, faults float64) *life {
	for end := l.sample.Time.Add(d); l.sample.Time.Before(end); {
		l.sample.Time = l.sample.Time.Add(l.every)
		l.sample.RSS, l.sample.Usage = anon, anon.Plus(cache)
		l.sample.MajorFaults += int64(faults * l.every.Seconds())
		l.look()
	}
	return l
}

// wait is the same without a fault, while nothing can go on for so many percent of the time.
func (l *life) wait(d time.Duration, percent int, anon, cache memory.Bytes) {
	for end := l.sample.Time.Add(d); l.sample.Time.Before(end); {
		l.waited = l.every * time.Duration(percent) / 100
		l.use(l.every, anon, cache, 0)
	}
}

func (l *life) look() {
	l.sample.WaitedPercent = average(l.before, l.sample, l.waited)
	l.before, l.waited = l.sample, 0
	l.watch.Add(l.sample, StallBounds{Limit: l.limit, High: l.high})
	l.note()
}

// average is the kernel's average of five minutes at the second of two samples, in hundredths of a percent, if waiting
// was the same all the time in between.
func average(before, s memory.Sample, waited time.Duration) float64 {
	lasted := s.Time.Sub(before.Time)
	if before.Time.IsZero() || s.Started != before.Started {
		return 0
	}
	left := math.Exp(-lasted.Minutes() / 5)
	percent := 100 * waited.Seconds() / lasted.Seconds()
	return math.Round(100*(before.WaitedPercent*left+percent*(1-left))) / 100
}

func (l *life) note() {
	s, ok := l.watch.Stall()
	if n := len(l.found); ok && (n == 0 || l.found[n-1].Confirmed != s.Confirmed || l.found[n-1].Ended != s.Ended) {
		l.found = append(l.found, s)
	}
}

// fill reads so much a second into page cache.
func (l *life) fill(d time.Duration, anon memory.Bytes, from, perSecond memory.Bytes) *life {
	for end, n := l.sample.Time.Add(d), memory.Bytes(0); l.sample.Time.Before(end); {
		l.sample.Time = l.sample.Time.Add(l.every)
		n += memory.Bytes(l.every.Seconds())
		l.sample.RSS, l.sample.Usage = anon, min(anon.Plus(from).Plus(n*perSecond), l.limit)
		l.sample.MajorFaults += int64(perSecond) * int64(l.every.Seconds()) / 4096
		l.look()
	}
	return l
}

func (l *life) restart() *life {
	l.sample.Started, l.sample.MajorFaults = l.sample.Time, 0
	return l
}

func mi(n int64) memory.Bytes { return memory.Bytes(n) * memory.MiB }

func TestWhatStalls(t *testing.T) {
	for name, tc := range map[string]struct {
		live func(*life)
		want time.Duration // from the start of the container to the sample that makes it known
	}{
		"Node.js below 256Mi, as it was seen: 235Mi anonymous, 100 to 200 faults a second": {
			func(l *life) { l.use(10*time.Minute, mi(180), mi(60), 0).use(5*time.Minute, mi(235), mi(20), 150) },
			11 * time.Minute,
		},
		"on a busy disk, where each fault takes 60 ms": {
			func(l *life) { l.use(10*time.Minute, mi(180), mi(60), 0).use(5*time.Minute, mi(232), mi(22), 14) },
			11 * time.Minute,
		},
		"from its first second: known when starting is no explanation any more": {
			func(l *life) { l.use(10*time.Minute, mi(235), mi(20), 150) }, 3 * time.Minute,
		},
		"looked at once a minute": {
			func(l *life) {
				l.every = time.Minute
				l.use(10*time.Minute, mi(180), mi(60), 0).use(10*time.Minute, mi(235), mi(20), 150)
			}, 13 * time.Minute,
		},
		"a process that always had some faults, and now has many more": {
			func(l *life) { l.use(20*time.Minute, mi(150), mi(80), 20).use(5*time.Minute, mi(235), mi(20), 150) },
			21 * time.Minute,
		},
		"the node takes page cache from it now and then": {
			func(l *life) {
				l.use(10*time.Minute, mi(180), mi(60), 0)
				for range 4 {
					l.use(15*time.Second, mi(232), mi(8), 150).use(90*time.Second, mi(232), mi(23), 150)
				}
			}, 11*time.Minute + 15*time.Second,
		},
		"pressure says it where faults are not counted": {
			func(l *life) {
				l.sample.HasMajorFaults = false
				l.use(10*time.Minute, mi(235), mi(20), 0).wait(3*time.Minute, 40, mi(235), mi(20))
			}, 11 * time.Minute,
		},
		"slowed down at memory.high, which is nine tenths of the way from 16Mi to the limit: no fault, and pressure": {
			func(l *life) {
				l.high = mi(232)
				l.use(10*time.Minute, mi(180), mi(20), 0).wait(3*time.Minute, 17, mi(228), mi(3))
			}, 11 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(mi(256))
			tc.live(l)
			if len(l.found) != 1 || !l.found[0].Ended.IsZero() {
				t.Fatalf("found %+v, want one stall that goes on", l.found)
			}
			if got := l.found[0].Confirmed.Sub(lifeBegan); got != tc.want {
				t.Errorf("known after %s, want %s", got, tc.want)
			}
			if s := l.found[0]; s.Limit != mi(256) || s.Confirmed.Sub(s.Since) < time.Minute || s.Faults == 0 &&
				s.PressurePercent == 0 {
				t.Errorf("found %+v", s)
			}
		})
	}
}

func TestWhatDoesNotStall(t *testing.T) {
	for name, live := range map[string]func(*life){
		"reads big files at its limit all day":                  func(l *life) { l.use(24*time.Hour, mi(22), mi(233), 0) },
		"reads big files beside a full heap":                    func(l *life) { l.use(24*time.Hour, mi(227), mi(27), 0) },
		"a mapped database: high rate, little anonymous memory": func(l *life) { l.use(24*time.Hour, mi(62), mi(193), 500) },
		"close to its limit, and quiet":                         func(l *life) { l.use(24*time.Hour, mi(238), mi(17), 1) },
		"a JVM that reads its image at start, its heap touched": func(l *life) {
			l.use(90*time.Second, mi(225), mi(30), 800).use(time.Hour, mi(230), mi(25), 0)
		},
		"a restart in a loop, each with its start": func(l *life) {
			for range 20 {
				l.restart().use(105*time.Second, mi(235), mi(20), 300)
			}
		},
		"a library is loaded at the limit: some seconds of faults": func(l *life) {
			for range 20 {
				l.use(10*time.Minute, mi(232), mi(23), 0).use(30*time.Second, mi(232), mi(23), 300)
			}
		},
		"full of anonymous memory, but with room: what it reads, it reads for the first time": func(l *life) {
			l.use(time.Hour, mi(220), mi(15), 50)
		},
		"a database that filled up slowly, and always had that rate": func(l *life) {
			l.use(time.Hour, mi(150), mi(100), 120).use(time.Hour, mi(232), mi(23), 200)
		},
		"no limit": func(l *life) { l.limit = 0; l.use(time.Hour, mi(235), mi(20), 150) },
		"nobody looked in between": func(l *life) {
			l.use(10*time.Minute, mi(235), mi(20), 0)
			l.every = time.Hour
			l.use(6*time.Hour, mi(235), mi(20), 150)
		},
		"a source that knows no faults": func(l *life) {
			l.sample.HasMajorFaults = false
			l.use(time.Hour, mi(235), mi(20),
				150)
		},
		"calm at memory.high": func(l *life) { l.high = mi(232); l.wait(time.Hour, 3, mi(228), mi(3)) },
		"next to calm at memory.high: a thousand times that would be a stall": func(l *life) {
			l.high = mi(232)
			for range 240 {
				l.waited = l.every / 5000
				l.use(l.every, mi(228), mi(3), 0)
			}
		},
		"below memory.high it waits for others: the node is short of memory": func(l *life) {
			l.high = mi(232)
			l.wait(time.Hour, 30, mi(190), mi(3))
		},
		"at memory.high, and all of it page cache": func(l *life) {
			l.high = mi(232)
			l.wait(time.Hour, 30, mi(90), mi(140))
		},
		"a node without memory.high: nothing holds it there": func(l *life) { l.wait(time.Hour, 30, mi(228), mi(3)) },
		"a kernel without PSI says 0, one with it says little": func(l *life) {
			for range 100 {
				l.waited = 300 * time.Millisecond
				l.use(l.every, mi(235), mi(20), 2)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(mi(256))
			if live(l); len(l.found) > 0 {
				t.Errorf("found %+v, want no stall", l.found)
			}
		})
	}
}

// TestPressureFollowsFromAverages: whatever the pressure before and within an interval of the length that the kubelet
// or memfit chose, and within a third either way wherever in a minute the waiting was.
func TestPressureFollowsFromAverages(t *testing.T) {
	for _, every := range []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, stallGap} {
		for _, percent := range []float64{0, 0.2, 1, 3, 10, 40, 100} {
			for _, earlier := range []float64{0, 0.5, 20, 100} { // for five minutes, until the interval begins
				from := memory.Sample{Time: lifeBegan, WaitedPercent: earlier}
				waited := time.Duration(float64(every) * percent / 100)
				pressureIn := func(to memory.Sample) float64 {
					return interval{from: stallSampleOf(from), to: stallSampleOf(to)}.pressure()
				}
				evenly := memory.Sample{Time: lifeBegan.Add(every)}
				evenly.WaitedPercent = average(from, evenly, waited)
				if got := pressureIn(evenly); math.Abs(got-percent) > 0.5 {
					t.Errorf("%s, %v%% after %v%%: pressure %v%%", every, percent, earlier, got)
				}
				if waited == 0 || waited == every || every > time.Minute {
					continue
				}
				first, last := memory.Sample{Time: lifeBegan.Add(waited)}, memory.Sample{Time: lifeBegan.Add(every - waited)}
				first.WaitedPercent, last.WaitedPercent = average(from, first, waited), average(from, last, 0)
				afterFirst, afterLast := evenly, evenly
				afterFirst.WaitedPercent = average(first, afterFirst, 0)
				afterLast.WaitedPercent = average(last, afterLast, waited)
				for name, to := range map[string]memory.Sample{"first": afterFirst, "last": afterLast} {
					if got := pressureIn(to); math.Abs(got-percent) > percent/3+0.5 {
						t.Errorf("%s, %v%% after %v%%, waiting %s: pressure %v%%", every, percent, earlier, name, got)
					}
				}
			}
		}
	}
}

// stalledLife has stalled at 256Mi for five minutes.
func stalledLife() *life { return newLife(mi(256)).use(10*time.Minute, mi(235), mi(20), 150) }

func TestHowAStallEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		live       func(*life)
		ended      bool
		raised     memory.Bytes
		inVain     bool
		wantStalls int
	}{
		"it goes on": {live: func(l *life) { l.use(time.Hour, mi(235), mi(20), 150) }},
		"one calm sample is no end": {live: func(l *life) {
			for range 20 {
				l.use(15*time.Second, mi(235), mi(20), 0).use(30*time.Second, mi(235), mi(20), 150)
			}
		}},
		"the load goes":      {live: func(l *life) { l.use(5*time.Minute, mi(180), mi(40), 0) }, ended: true},
		"the process is new": {live: func(l *life) { l.restart().use(time.Minute, mi(20), mi(40), 90) }, ended: true},
		"a raise helps": {live: func(l *life) {
			l.limit = mi(512)
			l.use(5*time.Minute, mi(235), mi(60), 0)
		}, ended: true, raised: mi(512)},
		"a raise helps, but reading in takes ten minutes on a slow disk": {live: func(l *life) {
			l.limit = mi(512)
			l.fill(10*time.Minute, mi(235), mi(20), 300*memory.KiB).use(5*time.Minute, mi(235), mi(200), 0)
		}, ended: true, raised: mi(512)},
		"a raise with a restart helps": {live: func(l *life) {
			l.limit = mi(512)
			l.restart().use(time.Minute, mi(100), mi(60), 400).use(10*time.Minute, mi(235), mi(60), 0)
		}, ended: true, raised: mi(512)},
		"a raise in vain: it reads a file far larger than any cache": {live: func(l *life) {
			l.limit = mi(512)
			l.use(10*time.Minute, mi(235), mi(275), 120)
		}, ended: true, raised: mi(512), inVain: true},
		"a raise in vain: it waits as much, and reads nothing": {live: func(l *life) {
			l.wait(time.Minute, 40, mi(235), mi(20))
			l.limit = mi(512)
			l.wait(10*time.Minute, 90, mi(260), mi(20))
		}, ended: true, raised: mi(512), inVain: true},
		"five minutes are not over": {live: func(l *life) {
			l.limit = mi(512)
			l.use(4*time.Minute, mi(235), mi(275), 120)
		}, raised: mi(512)},
		"a raise is filled at once: it stalls again, at the new limit": {live: func(l *life) {
			l.limit = mi(512)
			l.use(time.Minute, mi(400), mi(60), 0).use(5*time.Minute, mi(470), mi(40), 150)
		}, wantStalls: 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := stalledLife()
			tc.live(l)
			var ledger Ledger
			existing := map[types.UID]bool{"u1": true}
			for _, s := range l.found {
				ledger.UpdateStalls([]memory.Stall{s}, existing, l.sample.Time)
			}
			last, _ := l.watch.Stall()
			if last.Ended.IsZero() == tc.ended || tc.wantStalls < 2 &&
				(last.RaisedTo != tc.raised || last.NotRelieved != tc.inVain) {
				t.Errorf("got %+v", last)
			}
			if got, want := ledger.StallTotal("app"), int64(max(tc.wantStalls, 1)); got != want {
				t.Errorf("%d stalls counted, want %d: %+v", got, want, l.found)
			}
		})
	}
}

// TestMemoryHighIsWhereTheKubeletPutsIt: seen on a node with MemoryQoS were 121.6Mi for a request of 64Mi and a limit
// of 128Mi. A limit alone, a request as large and no limit make none.
func TestMemoryHighIsWhereTheKubeletPutsIt(t *testing.T) {
	for _, tc := range []struct{ request, limit, want int64 }{
		{64 << 20, 128 << 20, 127506841}, {0, 100 << 20, 90 << 20}, {128 << 20, 128 << 20, 0}, {64 << 20, 0, 0},
	} {
		requests := corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(tc.request, resource.BinarySI)}
		if got := highOf(requests, memory.Bytes(tc.limit)); int64(got) != tc.want {
			t.Errorf("request %d, limit %d: memory.high %d, want %d", tc.request, tc.limit, got, tc.want)
		}
	}
}

// TestWhatIsSaidOfAThrottledContainer: that it stood still below its limit, and what does that. It may get a good way
// from memory.high to its limit: 96 % of that was seen.
func TestWhatIsSaidOfAThrottledContainer(t *testing.T) {
	for _, used := range []memory.Bytes{mi(231), mi(246)} {
		l := newLife(mi(256))
		l.high = mi(232)
		l.use(10*time.Minute, mi(180), mi(20), 0).wait(3*time.Minute, 17, used.Minus(mi(3)), mi(3))
		s, _ := l.watch.Stall()
		if text := s.Why(); !strings.Contains(text, "17 % of the time; the kernel throttles it at memory.high, below ") {
			t.Errorf("%s: got %q", used, text)
		}
	}
	atLimit, noPressure := newLife(mi(256)), newLife(mi(256))
	atLimit.use(10*time.Minute, mi(180), mi(60), 0).wait(3*time.Minute, 40, mi(235), mi(19))
	noPressure.use(10*time.Minute, mi(180), mi(60), 0).use(3*time.Minute, mi(235), mi(11), 150)
	for name, l := range map[string]*life{"99 %": atLimit, "no pressure": noPressure, "both": stalledLife()} {
		if s, ok := l.watch.Stall(); !ok || strings.Contains(s.Why(), "memory.high") {
			t.Errorf("at its limit, %s: found %t, %q", name, ok, s.Why())
		}
	}
}
