// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/memory"
)

var start = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

// full is a reading of a container with 512Mi that holds so much anonymous memory.
func full(at time.Duration, anon memory.Bytes) Sample {
	return Sample{
		At: start.Add(at), PodLimit: cgroup.Unlimited,
		Reading: cgroup.Reading{Usage: anon, Anon: anon, Limit: 512 * memory.MiB, High: cgroup.Unlimited},
	}
}

// ramp reads a container every 250 ms that is flat at 200Mi for 40 s and then grows 9Mi/s for so long.
func ramp(r *Recorder, climb time.Duration) (end time.Duration, usage memory.Bytes) {
	const flat = 40 * time.Second
	for at := time.Duration(0); at <= flat+climb; at += fastest {
		usage = 200*memory.MiB + memory.Bytes(at%time.Second/fastest)*4*memory.KiB // noise
		if at > flat {
			usage = 200*memory.MiB + memory.Bytes(float64(9*memory.MiB)*(at-flat).Seconds())
		}
		r.Add(full(at, usage))
		end = at
	}
	return end, usage
}

func TestKillAfterARamp(t *testing.T) {
	r := New(true)
	end, usage := ramp(r, 30*time.Second)
	node := Process{PID: 70, InnerPID: 1, Name: "node", Resident: 460 * memory.MiB}
	last := full(end+50*time.Millisecond, usage)
	last.Processes = []Process{{PID: 71, InnerPID: 9, Name: "sh", Resident: memory.MiB}, node}
	r.Add(last)
	after := full(end+250*time.Millisecond, 2*memory.MiB)
	after.Reading.Kills, after.Processes = 1, []Process{}
	if !r.Add(after) {
		t.Fatal("the kill is no trigger")
	}
	k := r.LastKill()
	if k == nil || k.Kind != MainProcess || k.Detection != CounterRose || k.Usage != usage || r.Kills() != 1 {
		t.Fatalf("%+v", k)
	}
	if k.LastRead != 200*time.Millisecond || len(k.Processes) != 2 || k.Processes[0] != node {
		t.Errorf("read %s before, processes %+v", k.LastRead, k.Processes)
	}
	if mib := k.Growth.PerSecond; mib < 9*memory.MiB-64*memory.KiB || mib > 9*memory.MiB+64*memory.KiB ||
		(k.Growth.For-30*time.Second).Abs() > time.Second {
		t.Errorf("grew by %s/s for %s, want 9Mi/s for 30s", mib, k.Growth.For)
	}
	if len(k.Series) > MaxSeries || len(k.Series) < MaxSeries-5 || k.Series[0].Before > history {
		t.Errorf("%d points from %s on, want about %d", len(k.Series), k.Series[0].Before, MaxSeries)
	}
	for i := 1; i < len(k.Series); i++ {
		if k.Series[i].Before >= k.Series[i-1].Before {
			t.Errorf("point %d is %s before, the one before it %s", i, k.Series[i].Before, k.Series[i-1].Before)
		}
	}
	want := "OOM kill of the main process (node, 460Mi resident when last seen) at the limit of 512Mi of the container; " +
		"200ms before detection, usage was 470Mi, after growth of 9Mi/s for 30s"
	if k.Summary() != want {
		t.Errorf("%s\nwant\n%s", k.Summary(), want)
	}
}

// TestLimitsThatChangedMeanwhile: who sees a kill may raise the limit before the agent notices the kill.
func TestLimitsThatChangedMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		limit, ofPod memory.Bytes // when it was noticed
		changed      bool
	}{
		"neither":       {512 * memory.MiB, 512 * memory.MiB, false},
		"the container": {memory.GiB, 512 * memory.MiB, true},
		"both":          {memory.GiB, memory.GiB, true},
	} {
		r, before := New(true), full(0, 500*memory.MiB)
		before.PodLimit = 512 * memory.MiB
		r.Add(before)
		after := full(time.Second, 2*memory.MiB)
		after.Reading.Kills, after.Reading.Limit, after.PodLimit = 1, c.limit, c.ofPod
		r.Add(after)
		k := r.LastKill()
		if k.ContainerLimit != 512*memory.MiB || k.PodLimit != 512*memory.MiB || k.LimitsChanged != c.changed {
			t.Errorf("%s: %s, %s, changed=%v", name, k.ContainerLimit, k.PodLimit, k.LimitsChanged)
		}
	}
}

func TestKills(t *testing.T) {
	kill := func(at time.Duration, kills uint64, processes []Process) Sample {
		s := full(at, 100*memory.MiB)
		s.Reading.Kills, s.Processes = kills, processes
		return s
	}
	both := []Process{{PID: 1, InnerPID: 1, Name: "sh"}, {PID: 2, InnerPID: 7, Name: "stress", Resident: memory.MiB}}
	t.Run("of before the agent started", func(t *testing.T) {
		r := New(false)
		if r.Add(kill(0, 3, both)) || r.Kills() != 0 {
			t.Errorf("%+v", r.LastKill())
		}
		if !r.Add(kill(time.Second, 4, both)) || r.Kills() != 1 {
			t.Error("the one after is not seen")
		}
	})
	t.Run("of a new container, before it was read once", func(t *testing.T) {
		r := New(true)
		if !r.Add(kill(0, 1, both)) {
			t.Fatal("not seen")
		}
		if k := r.LastKill(); k.Seen || !strings.Contains(k.Summary(), "earlier usage is unknown") {
			t.Errorf("%+v %s", k, k.Summary())
		}
	})
	t.Run("of a child", func(t *testing.T) {
		r := New(true)
		r.Add(kill(0, 0, both))
		r.Add(kill(time.Second, 1, both[:1]))
		k := r.LastKill()
		if k == nil || k.Kind != ChildProcess || len(k.Processes) != 1 || k.Processes[0].Name != "stress" {
			t.Fatalf("%+v", k)
		}
		if !strings.Contains(k.Summary(), "so the last growth was too fast to be recorded") {
			t.Error(k.Summary())
		}
	})
	t.Run("the kubelet says the same a moment later", func(t *testing.T) {
		r := New(true)
		r.Add(kill(0, 0, both))
		r.Add(kill(time.Second, 1, nil))
		if r.LastKill().Kind != ChildProcess {
			t.Fatal("processes that were not read say nothing")
		}
		if !r.Terminated(start.Add(2*time.Second), time.Time{}, start.Add(3*time.Second)) || r.Kills() != 1 ||
			r.LastKill().Kind != MainProcess {
			t.Errorf("%d kills, %+v", r.Kills(), r.LastKill())
		}
		if r.Terminated(start.Add(2*time.Second), time.Time{}, start.Add(4*time.Second)) {
			t.Error("the same once more is news")
		}
	})
	t.Run("of a process that takes a moment to go", func(t *testing.T) {
		r := New(true)
		r.Add(kill(0, 0, both))
		r.Add(kill(time.Second, 1, both))
		if r.Add(kill(time.Second+fastest, 1, both)) || !r.Add(kill(time.Second+2*fastest, 1, both[:1])) {
			t.Error("who died is not told when it is known")
		}
		if k := r.LastKill(); len(k.Processes) != 1 || k.Processes[0].Name != "stress" || k.Kind != ChildProcess {
			t.Errorf("%+v", k)
		}
		r.Add(kill(10*time.Second, 1, []Process{}))
		if k := r.LastKill(); len(k.Processes) != 1 || r.Kills() != 1 {
			t.Errorf("what ended later is told as part of the kill: %+v", k)
		}
	})
	t.Run("only the kubelet saw it", func(t *testing.T) {
		r := New(true)
		r.Add(kill(0, 0, both))
		noticed := start.Add(1250 * time.Millisecond)
		if !r.Terminated(start.Add(time.Second), noticed, start.Add(2*time.Second)) {
			t.Fatal("not told")
		}
		if k := r.LastKill(); k.Detection != PodStatus || k.Kind != MainProcess || len(k.Processes) != 2 ||
			!k.Time.Equal(noticed) || k.LastRead != 1250*time.Millisecond {
			t.Errorf("%+v", k)
		}
		r = New(true)
		r.Add(kill(900*time.Millisecond, 0, both))
		if !r.Terminated(start, time.Time{}, start.Add(2*time.Second)) || r.LastKill().LastRead != 0 {
			t.Errorf("the kubelet's seconds make a time before the last reading: %+v", r.LastKill())
		}
		if New(true).Terminated(start, time.Time{}, start.Add(time.Hour)) {
			t.Error("a kill of an hour ago is told as if it had been watched")
		}
	})
	t.Run("at the limit of the pod", func(t *testing.T) {
		r := New(true)
		r.Add(kill(0, 0, both))
		s := kill(time.Second, 1, both[:1])
		s.PodLimit = 128 * memory.MiB
		r.Add(s)
		if text := r.LastKill().Summary(); !strings.Contains(text, "at the limit of 128Mi of the pod") {
			t.Error(text)
		}
	})
}

func TestGrowth(t *testing.T) {
	at := func(step time.Duration, mib ...memory.Bytes) []point {
		var out []point
		for i, m := range mib {
			out = append(out, point{start.Add(time.Duration(i) * step), m * memory.MiB})
		}
		return out
	}
	for name, tc := range map[string]struct {
		points []point
		perSec memory.Bytes
		lasts  time.Duration
	}{
		"nothing":                 {nil, 0, 0},
		"flat":                    {at(time.Second, 100, 100, 100), 0, 0},
		"falling":                 {at(time.Second, 300, 200, 100), 0, 0},
		"all the way":             {at(time.Second, 100, 110, 120), 10 * memory.MiB, 2 * time.Second},
		"flat, then up":           {at(time.Second, 100, 100, 100, 110, 120), 10 * memory.MiB, 2 * time.Second},
		"the last tooth":          {at(time.Second, 100, 200, 300, 100, 200, 300), 100 * memory.MiB, 2 * time.Second},
		"with a small dip":        {at(time.Second, 100, 140, 135, 180), 80 * memory.MiB / 3, 3 * time.Second},
		"in steps":                {at(time.Second, 100, 110, 110, 110, 120, 120, 130), 5 * memory.MiB, 6 * time.Second},
		"less than a word":        {at(time.Minute, 100, 100), 0, 0},
		"up, and down at the end": {at(time.Second, 100, 200, 150), 0, 0},
	} {
		got := growth(tc.points)
		if got.For != tc.lasts || (got.PerSecond-tc.perSec) > 1 || (tc.perSec-got.PerSecond) > 1 {
			t.Errorf("%s: %s/s for %s, want %s/s for %s", name, got.PerSecond, got.For, tc.perSec, tc.lasts)
		}
	}
}

func TestUrgency(t *testing.T) {
	cache := full(0, 100*memory.MiB)
	cache.Reading.Usage, cache.Reading.File = 511*memory.MiB, 411*memory.MiB
	pod := full(0, 100*memory.MiB)
	pod.PodLimit = 110 * memory.MiB
	none := full(0, 100*memory.GiB)
	none.Reading.Limit = cgroup.Unlimited
	for name, tc := range map[string]struct {
		samples []Sample
		want    Urgency
	}{
		"much room":              {[]Sample{full(0, 100*memory.MiB)}, Quiet},
		"a limit full of files":  {[]Sample{cache}, Quiet},
		"no limit":               {[]Sample{none}, Quiet},
		"two thirds":             {[]Sample{full(0, 340*memory.MiB)}, Wary},
		"nine tenths":            {[]Sample{full(0, 460*memory.MiB)}, Near},
		"near the pod's limit":   {[]Sample{pod}, Near},
		"room, and a fast climb": {[]Sample{full(0, 50*memory.MiB), full(time.Second, 200*memory.MiB)}, Near},
		"room, and a climb":      {[]Sample{full(0, 50*memory.MiB), full(time.Second, 60*memory.MiB)}, Wary},
	} {
		r := New(false)
		for _, s := range tc.samples {
			r.Add(s)
		}
		if got := r.Urgency(start.Add(time.Second)); got != tc.want {
			t.Errorf("%s: urgency %d, want %d", name, got, tc.want)
		}
	}
}

// TestAStartIsWatched: how fast a container that is new on the node grows is not known in its first seconds.
func TestAStartIsWatched(t *testing.T) {
	r, old := New(true), New(false)
	for at := range 12 {
		s := full(time.Duration(at)*time.Second, 100*memory.MiB)
		r.Add(s)
		old.Add(s)
		want := Near
		if at >= 10 {
			want = Quiet
		}
		if got := r.Urgency(s.At); got != want {
			t.Errorf("after %d s: urgency %d, want %d", at, got, want)
		}
		if got := old.Urgency(s.At); got != Quiet {
			t.Errorf("after %d s: urgency %d of a container that ran before", at, got)
		}
	}
}

// TestPartialReadings: usage alone moves the urgency, and asks for a full reading when it comes near.
func TestPartialReadings(t *testing.T) {
	r := New(false)
	if !r.WantsFull(0, start) {
		t.Error("the first reading should be a full one")
	}
	r.Add(full(0, 100*memory.MiB))
	if r.WantsFull(101*memory.MiB, start.Add(time.Second)) {
		t.Error("a quiet container is read in full every time")
	}
	if !r.WantsFull(400*memory.MiB, start.Add(time.Second)) || !r.WantsFull(memory.MiB, start.Add(fullEvery)) {
		t.Error("neither nearness nor time asks for a full reading")
	}
	partial := full(2*time.Second, 500*memory.MiB)
	partial.Partial, partial.Reading = true, cgroup.Reading{Usage: 500 * memory.MiB}
	if r.Add(partial) || r.Urgency(partial.At) != Near || r.Peak() != 500*memory.MiB {
		t.Errorf("urgency %d, peak %s", r.Urgency(partial.At), r.Peak())
	}
	if last, _, at := r.Last(); last.Limit != 512*memory.MiB || !at.Equal(start) {
		t.Errorf("a partial reading replaced the full one: %+v", last)
	}
}

// stalled is a sample of a container at its limit that reads so many pages a second back.
func stalled(at time.Duration, faults uint64) Sample {
	s := full(at, 480*memory.MiB)
	s.Reading.Usage, s.Reading.Faults = 510*memory.MiB, faults
	return s
}

func TestStall(t *testing.T) {
	r := New(true)
	at, faults, began := time.Duration(0), uint64(0), time.Duration(0)
	run := func(rate uint64, until time.Duration) {
		for ; at <= until; at += time.Second {
			if r.Add(stalled(at, faults)) && began == 0 {
				began = at
			}
			faults += rate
		}
	}
	run(0, time.Minute)
	if r.LastStall() != nil {
		t.Fatalf("at its limit and well: %+v", r.LastStall())
	}
	run(40, 3*time.Minute)
	s := r.LastStall()
	if s == nil || !s.Ended.IsZero() || s.FaultsPerSec < 38 || began < time.Minute+stallBegins ||
		began > time.Minute+stallBegins+stallWindow {
		t.Fatalf("%+v, noticed after %s", s, began)
	}
	if !strings.HasPrefix(s.Summary(), "stalls at its limit of 512Mi without an OOM kill: 480Mi is ") {
		t.Error(s.Summary())
	}
	run(0, 5*time.Minute)
	if ended := r.LastStall(); ended.Ended.IsZero() || !s.Ended.IsZero() {
		t.Errorf("%+v (was %+v)", ended, s)
	}
}

// TestABurstIsNoStall: reading a library in is over before half a minute, and a process that always maps files it does
// not keep has its usual rate.
func TestABurstIsNoStall(t *testing.T) {
	for name, rate := range map[string]func(second int) uint64{
		"a burst of 20 s every minute": func(second int) uint64 {
			if second%60 < 20 {
				return 200
			}
			return 0
		},
		"as many as it has away from its limit": func(int) uint64 { return 40 },
	} {
		r, faults := New(true), uint64(0)
		for second := range 900 {
			s := stalled(time.Duration(second)*time.Second, faults)
			if second < 400 { // a reader of files is at its limit then, too
				s.Reading.Anon = 300 * memory.MiB
			}
			r.Add(s)
			faults += rate(second)
		}
		if s := r.LastStall(); s != nil {
			t.Errorf("%s: %s", name, s.Summary())
		}
	}
}

// TestAStallFromWhichTheNodeTakesPageCache: now and then, so that its usage is below the limit for some seconds.
func TestAStallFromWhichTheNodeTakesPageCache(t *testing.T) {
	r, faults := New(true), uint64(0)
	for second := range 600 {
		s := stalled(time.Duration(second)*time.Second, faults)
		switch {
		case second < 300:
			s.Reading.Usage, s.Reading.Anon = 300*memory.MiB, 250*memory.MiB
		case second%60 < 10:
			s.Reading.Usage = 485 * memory.MiB
		}
		r.Add(s)
		if second >= 300 {
			faults += 150
		}
	}
	if r.LastStall() == nil {
		t.Error("no stall")
	}
}

// TestTheMinuteBeforeAStall: a stall is certain half a minute after it began, and the report covers the minute before
// its first sign, with the growth up to the level at which it stalls and the lower of the limits of container and pod.
func TestTheMinuteBeforeAStall(t *testing.T) {
	r := New(true)
	const climb, every = 80 * time.Second, 250 * time.Millisecond
	for at := time.Duration(0); r.LastStall() == nil; at += every {
		s := stalled(at, 0)
		s.PodLimit = 511 * memory.MiB
		if at <= climb { // 5 MiB a second up to where it stands still
			left := memory.Bytes((climb - at).Seconds() * 5 * float64(memory.MiB))
			s.Reading.Usage, s.Reading.Anon = s.Reading.Usage-left, s.Reading.Anon-left
		} else {
			s.Reading.Faults = uint64((at - climb).Seconds() * 40)
		}
		r.Add(s)
		if at > time.Hour {
			t.Fatal("no stall")
		}
	}
	s := r.LastStall()
	if late := s.Started.Sub(start) - climb; late.Abs() > stallWindow {
		t.Fatalf("it started %s after it came to its limit", late)
	}
	if s.Growth.PerSecond < 4<<20 || s.Growth.PerSecond > 5<<20 || s.Growth.For < 40*time.Second {
		t.Errorf("growth by %s/s for %s", s.Growth.PerSecond, s.Growth.For)
	}
	first, last := s.Series[0], s.Series[len(s.Series)-1]
	if first.Before < 55*time.Second || first.Before > time.Minute || last.Before > every || len(s.Series) > MaxSeries ||
		last.Usage != s.Usage || last.Usage-first.Usage < 200*memory.MiB {
		t.Errorf("%d points from %+v to %+v", len(s.Series), first, last)
	}
	fine := 0
	for _, p := range s.Series {
		if p.Before < detail {
			fine++
		}
	}
	if fine < int(detail/every)-1 {
		t.Errorf("%d readings of the last %s", fine, detail)
	}
	if limit, whose := s.Limit(); limit != 511*memory.MiB || whose != "the pod" || s.ContainerLimit != 512*memory.MiB {
		t.Errorf("at %s of %s", limit, whose)
	}
	text := s.Summary()
	if !strings.HasPrefix(text, "stalls at the limit of 511Mi of its pod without an OOM kill: 480Mi is ") ||
		!strings.Contains(text, "; before that, usage grew by ") {
		t.Error(text)
	}
}

func TestStallByPressure(t *testing.T) {
	r, told := New(true), false
	for at := time.Duration(0); at <= 2*time.Minute; at += time.Second {
		s := stalled(at, 0)
		s.Reading.Waited = new(at / 4)
		told = r.Add(s) || told
	}
	if s := r.LastStall(); !told || s == nil || s.StalledPercent != 25 {
		t.Errorf("%+v", s)
	}
}

// TestStallAtMemoryHigh: a container is held below its limit by memory.high, and waits for no file.
func TestStallAtMemoryHigh(t *testing.T) {
	for high, want := range map[memory.Bytes]string{
		460 * memory.MiB: "stalls at memory.high of 460Mi, below its limit of 512Mi without an OOM kill: 455Mi is",
		500 * memory.MiB: "", // it has room up to there
	} {
		r := New(true)
		for at := time.Duration(0); at <= 2*time.Minute; at += time.Second {
			s := full(at, 455*memory.MiB)
			s.Reading.Usage, s.Reading.High = 459*memory.MiB, high
			s.Reading.Waited = new(at / 4)
			r.Add(s)
		}
		s := r.LastStall()
		if (s != nil) != (want != "") || s != nil && !strings.HasPrefix(s.Summary(), want) {
			t.Errorf("memory.high %s: %+v, want %q", high, s, want)
		}
	}
}

func TestGovernor(t *testing.T) {
	var g Governor
	if g.Stretch() != 1 {
		t.Error("a new governor stretches")
	}
	for range 50 { // four times what is allowed, and it falls with the stretch
		g.Spent(time.Duration(float64(20*time.Millisecond)/g.Stretch()), time.Second)
	}
	if s := g.Stretch(); s < 3.9 || s > 4.1 {
		t.Errorf("stretches %.2f times, want 4", s)
	}
	for range 50 {
		g.Spent(time.Millisecond, time.Second)
	}
	if g.Stretch() != 1 {
		t.Errorf("does not come back: %.2f", g.Stretch())
	}
	for range 50 {
		g.Spent(time.Second, time.Second)
	}
	if near, q := g.Interval(Near), g.Interval(Quiet); near != 2*fastest || q != maxStretch*quiet {
		t.Errorf("at the most, near its limit a container is read every %s, and others every %s", near, q)
	}
	if g.Stretch() > maxStretch {
		t.Errorf("stretches %.2f times", g.Stretch())
	}
}

// TestWrites: whatever happens within a day, a pod's object is written within its budget.
func TestWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		trigger     bool
		change      Change
		least, most int
	}{
		"nothing happens":        {false, Same, 8, 9},
		"numbers change all day": {false, Changed, 6 * 24, 6*24 + maxQuiet},
		"numbers jump all day":   {false, Jumped, 8 * 24, 8*24 + maxQuiet + maxJumps},
		"it is killed all day":   {true, Changed, 24 * 60, 24*60 + maxBurst},
	} {
		w := NewWrites(start, 0)
		writes, last := 0, time.Time{}
		for at := start; at.Before(start.Add(24 * time.Hour)); at = at.Add(time.Second) {
			if !w.Due(at, tc.trigger, tc.change) {
				continue
			}
			if !last.IsZero() && at.Sub(last) < floor {
				t.Fatalf("%s: two writes within %s", name, at.Sub(last))
			}
			w.Wrote(at, tc.trigger)
			writes, last = writes+1, at
		}
		if writes < tc.least || writes > tc.most {
			t.Errorf("%s: %d writes in a day, want %d to %d", name, writes, tc.least, tc.most)
		}
	}
	w := NewWrites(start, 0)
	w.Wrote(start, false)
	if w.Due(start.Add(quietFloor-1), false, Changed) || !w.Due(start.Add(quietFloor), false, Changed) {
		t.Error("numbers that jumped are not told after half a minute, or before")
	}
	for range maxQuiet - 1 { // as a start does
		w.Wrote(start, false)
	}
	if at := start.Add(time.Minute); w.Due(at, false, Changed) || !w.Due(at, false, Jumped) {
		t.Error("after a busy start, numbers that jumped are not told, or small changes are")
	}
	w = NewWrites(start, 0.5)
	if w.Due(start.Add(firstAfter), false, Changed) || !w.Due(start, true, Changed) ||
		!w.Due(start.Add(time.Minute), false, Same) {
		t.Error("the first write is not after a minute, or at once where something happened")
	}
	w.Wrote(start, false)
	if w.Due(start.Add(floor-1), true, Changed) || !w.Due(start.Add(floor), true, Changed) {
		t.Error("a kill is not told at once, or below the floor")
	}
}

// TestReadOftenForAMinute: the record of a container that is read every 50 ms goes as far back as that of others, and
// ends with its last reading.
func TestReadOftenForAMinute(t *testing.T) {
	r := New(true)
	end := 2 * time.Minute
	for at := time.Duration(0); at <= end; at += imminent {
		r.Add(full(at, memory.Bytes(at.Milliseconds())*memory.KiB))
	}
	points := r.points(start.Add(end), history)
	first, last := points[0], points[len(points)-1]
	back := last.at.Sub(first.at)
	if back < history-time.Second || !last.at.Equal(start.Add(end)) || r.Usage() != last.usage {
		t.Errorf("%d points of %s, the last at %s", len(points), back, last.at)
	}
	for i := 1; i < len(points)-1; i++ {
		if gap := points[i].at.Sub(points[i-1].at); gap != fastest {
			t.Fatalf("point %d comes %s after the one before", i, gap)
		}
	}
}

// TestReadingsForRescuesAreBounded: by their number.
func TestReadingsForRescuesAreBounded(t *testing.T) {
	for _, containers := range []int{1, 11, 55, 110, 500} {
		if perSecond := float64(containers) / AlertInterval(containers).Seconds(); perSecond > alertSecond+0.01 {
			t.Errorf("%d containers that may be lent memory: %.0f readings a second", containers, perSecond)
		}
		if perSecond := float64(containers) / ImminentInterval(containers).Seconds(); perSecond > imminentSecond+0.01 {
			t.Errorf("%d containers about to reach their limit: %.0f readings a second", containers, perSecond)
		}
	}
	if ImminentInterval(11) != imminent || AlertInterval(55) != alert {
		t.Error("11 containers about to reach their limit, and 55 in all, are already too many")
	}
}

// TestWhoseKillItWas: the kernel counts that a limit was reached (oom in memory.events) before it counts a kill, in the
// container and its pod. The numbers are those of a node with cgroup v2: a single kill comes with any number of failed
// allocations, and those of a container with one limit are its pod's, to which the pause process adds.
func TestWhoseKillItWas(t *testing.T) {
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	events := func(kills, reached uint64) cgroup.Events {
		return cgroup.Events{Kills: kills, LimitFailures: reached, Known: true}
	}
	v1 := cgroup.Events{}
	reading := func(seconds float64, container, pod cgroup.Events) Sample {
		s := full(0, 100*memory.MiB)
		s.At, s.Reading.Events, s.Pod = at(seconds), container, pod
		return s
	}
	beside := func(s Sample) Sample { s.Neighbor = true; return s }
	for name, c := range map[string]struct {
		old      bool // on the node before the agent
		readings []Sample
		ended    *cgroup.Events // the pod's, with which the container is found to have ended a second later
		neighbor bool
		want     Reached
	}{
		"a child at the limit of the pod, which is the container's": {
			readings: []Sample{reading(0, events(0, 0), events(0, 0)), reading(10, events(1, 0), events(1, 57811))},
			want:     ReachedYes,
		},
		"a child at the container's own limit, beside another container": {
			readings: []Sample{reading(0, events(0, 0), events(4, 9)), beside(reading(10, events(1, 3), events(5, 12)))},
			want:     ReachedYes,
		},
		"a child, by the node": {
			readings: []Sample{reading(0, events(0, 0), events(0, 0)), reading(10, events(1, 0), events(1, 0))},
			want:     ReachedNo,
		},
		"by the node, after earlier kills at the limit": {
			old: true,
			readings: []Sample{
				reading(0, events(2, 7), events(2, 8)), reading(10, events(2, 7), events(2, 8)),
				reading(90, events(3, 7), events(3, 8)),
			},
			want: ReachedNo,
		},
		"the limit first, the kill in the next reading": {
			readings: []Sample{
				reading(0, events(0, 0), events(0, 0)), reading(1, events(0, 4), events(0, 4)),
				reading(2, events(1, 4), events(1, 4)),
			},
			want: ReachedYes,
		},
		"the limit two minutes before a kill by the node": {
			readings: []Sample{
				reading(0, events(0, 0), events(0, 0)), reading(1, events(0, 4), events(0, 4)),
				reading(120, events(1, 4), events(1, 4)),
			},
			want: ReachedNo,
		},
		"before the first reading, at the container's own limit": {
			readings: []Sample{reading(0, events(1, 3), events(1, 3))}, want: ReachedYes,
		},
		"before the first reading, otherwise": {readings: []Sample{reading(0, events(1, 0), events(5, 3))}},
		"an agent that starts later": {
			old: true, readings: []Sample{reading(0, events(2, 7), events(2, 7)), reading(1, events(3, 7), events(3, 7))},
			want: ReachedNo,
		},
		"a neighbor may have reached its limit": {
			readings: []Sample{reading(0, events(0, 0), events(0, 0)), beside(reading(10, events(1, 0), events(2, 3)))},
		},
		"counters that do not include cgroups below (memory_localevents)": {
			readings: []Sample{reading(0, events(0, 0), events(0, 0)), reading(10, events(1, 0), events(0, 0))},
		},
		"version 1": {readings: []Sample{reading(0, v1, v1), reading(10, cgroup.Events{Kills: 1}, v1)}},
		"the whole container, at its limit": {
			readings: []Sample{reading(0, events(0, 0), events(3, 8))}, ended: new(events(5, 44)), want: ReachedYes,
		},
		"the whole container, by the node": {
			readings: []Sample{reading(0, events(0, 0), events(3, 8))}, ended: new(events(5, 8)), want: ReachedNo,
		},
		"the whole container, and perhaps a neighbor": {
			readings: []Sample{reading(0, events(0, 0), events(3, 8))}, ended: new(events(5, 44)), neighbor: true,
		},
		"the whole container, before its first reading": {ended: new(events(5, 44))},
		"the whole container, and its pod has gone": {
			readings: []Sample{reading(0, events(0, 0), events(3, 8))}, ended: &v1,
		},
	} {
		r := New(!c.old)
		for _, s := range c.readings {
			r.Add(s)
		}
		if c.ended != nil {
			r.Ended(*c.ended, c.neighbor, at(1))
			r.Terminated(at(1), at(1), at(2))
		}
		k := r.LastKill()
		if k == nil || r.Kills() != 1 || k.Reached != c.want {
			t.Errorf("%s: %+v, want %q", name, k, c.want)
			continue
		}
		if node := strings.Contains(k.Summary(), "which had not reached the limit of 512Mi of the container: the node ran "+
			"out of memory"); node != (c.want == ReachedNo) {
			t.Errorf("%s: %s", name, k.Summary())
		}
	}
}
