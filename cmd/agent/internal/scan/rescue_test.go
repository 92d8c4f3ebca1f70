// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"testing"
	"testing/fstest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rescue"
)

// everywhere allows rescues in all namespaces.
func everywhere(string) bool { return true }

// live lets time go by as a real agent does, with what containers hold at each tick.
func (n *node) live(d time.Duration, hold func(since time.Duration)) {
	begin := n.now
	for until := n.now.Add(d); n.now.Before(until); n.now = n.now.Add(n.loop.Every()) {
		hold(n.now.Sub(begin))
		n.loop.Tick(n.t.Context(), n.now)
	}
}

// holds writes usage, of which some is page cache, and the limit of an instance.
func (n *node) holds(uid types.UID, id string, usage, file, limit memory.Bytes) {
	put := func(name, text string) { n.cgroups[name] = &fstest.MapFile{Data: []byte(text)} }
	at := dir(uid, id)
	put(at+"/memory.usage_in_bytes", strconv.FormatInt(int64(usage), 10))
	put(at+"/memory.limit_in_bytes", strconv.FormatInt(int64(limit), 10))
	put(at+"/memory.stat", fmt.Sprintf("total_rss %d\ntotal_active_file %d\n", usage-file, file))
}

// rescueNode is a node with one container that is 40 s old, holds 100Mi of 512Mi and may be lent memory.
func rescueNode(t *testing.T) (n *node, hold func(usage, file, limit float64)) {
	t.Helper()
	n = newNode(t)
	n.loop.Rescues = everywhere
	uid, id := uidOf(1), idOf(1)
	n.set(uid, id, 100*memory.MiB, 0, 70)
	n.tell(uid, id, "")
	hold = func(usage, file, limit float64) {
		n.holds(uid, id, memory.Bytes(usage*float64(memory.MiB)), memory.Bytes(file*float64(memory.MiB)),
			memory.Bytes(limit)*memory.MiB)
	}
	n.live(40*time.Second, func(time.Duration) { hold(100, 0, 512) })
	return n, hold
}

// TestARampRaisesAnAlarm: early enough for a higher limit to become effective, once, and with what was read. The first
// time, where readings cost so much that the others are stretched as far as they may be.
func TestARampRaisesAnAlarm(t *testing.T) {
	for i, perSecond := range []float64{400, 5, 25, 100, 400} {
		n, hold := rescueNode(t)
		if i == 0 {
			for range 50 {
				n.loop.Spent(time.Second, time.Second)
			}
			n.live(10*time.Second, func(time.Duration) { hold(100, 0, 512) })
		}
		var left time.Duration
		n.live(2*time.Minute, func(since time.Duration) {
			usage := 100 + perSecond*since.Seconds()
			hold(min(usage, 511), 0, 512)
			if len(n.writer.alarms) == 0 {
				left = time.Duration((512 - usage) / perSecond * float64(time.Second))
			}
		})
		if len(n.writer.alarms) != 1 {
			t.Errorf("%v MiB/s: %d alarms", perSecond, len(n.writer.alarms))
			continue
		}
		// left is that of the reading before the alarm
		if left < 275*time.Millisecond || left > 600*time.Millisecond+time.Duration(2e9/perSecond) {
			t.Errorf("%v MiB/s: %s before the limit", perSecond, left)
		}
		status := n.writer.alarms[0].status
		a := status.Alarm
		if a.Container != "app" || a.ContainerID != idOf(1) || a.Limit.String() != "512Mi" || status.NodeName != "node-a" ||
			a.Sequence <= 0 || math.Abs(float64(a.GrowthPerSecond.Value())/float64(memory.MiB)/perSecond-1) > 0.1 {
			t.Errorf("%v MiB/s: %+v", perSecond, a)
		}
	}
}

// TestNoAlarm: of what does not reach the limit, or may not be lent memory.
func TestNoAlarm(t *testing.T) {
	for name, c := range map[string]struct {
		hold    func(hold func(usage, file, limit float64)) func(time.Duration)
		rescues func(string) bool
	}{
		"page cache": {func(hold func(usage, file, limit float64)) func(time.Duration) {
			return func(d time.Duration) { u := min(100+100*d.Seconds(), 511); hold(u, u-100, 512) }
		}, everywhere},
		"a ramp that ends": {func(hold func(usage, file, limit float64)) func(time.Duration) {
			return func(d time.Duration) { hold(min(100+50*d.Seconds(), 400), 0, 512) }
		}, everywhere},
		"another namespace": {func(hold func(usage, file, limit float64)) func(time.Duration) {
			return func(d time.Duration) { hold(min(100+50*d.Seconds(), 511), 0, 512) }
		}, func(namespace string) bool { return namespace != "shop" }},
		"an agent without rescues": {func(hold func(usage, file, limit float64)) func(time.Duration) {
			return func(d time.Duration) { hold(min(100+50*d.Seconds(), 511), 0, 512) }
		}, nil},
	} {
		n, hold := rescueNode(t)
		n.loop.Rescues = c.rescues
		n.live(time.Minute, c.hold(hold))
		if len(n.writer.alarms) != 0 || n.loop.Every() < TickEvery {
			t.Errorf("%s: %d alarms, a tick every %s", name, len(n.writer.alarms), n.loop.Every())
		}
	}
}

// TestASawtoothRaisesNoAlarm: after it has turned around once.
func TestASawtoothRaisesNoAlarm(t *testing.T) {
	n, hold := rescueNode(t)
	saw := func(d time.Duration) { hold(300+200*math.Mod(d.Seconds(), 8)/8, 0, 512) }
	n.live(time.Minute, saw)
	first := len(n.writer.alarms)
	if n.live(30*time.Minute, saw); first > 1 || len(n.writer.alarms) != first {
		t.Errorf("%d alarms in the first minute, %d later", first, len(n.writer.alarms)-first)
	}
}

// TestALeakRaisesOneAlarm: one for each limit that it reaches.
func TestALeakRaisesOneAlarm(t *testing.T) {
	n, hold := rescueNode(t)
	n.live(5*time.Minute, func(d time.Duration) { hold(min(300+d.Seconds(), 511), 0, 512) })
	if len(n.writer.alarms) != 1 {
		t.Fatalf("%d alarms of a leak", len(n.writer.alarms))
	}
	n.live(5*time.Minute, func(d time.Duration) { hold(min(511+d.Seconds(), 639), 0, 640) })
	if len(n.writer.alarms) != 2 || n.writer.alarms[1].status.Alarm.Sequence <= n.writer.alarms[0].status.Alarm.Sequence {
		t.Errorf("%d alarms at two limits", len(n.writer.alarms))
	}
}

// TestTheLimitIsRaised: how long that took is the horizon of the next alarm, and an ordinary snapshot follows.
func TestTheLimitIsRaised(t *testing.T) {
	n, hold := rescueNode(t)
	n.live(time.Minute/2, func(time.Duration) { hold(100, 0, 512) })
	written := len(n.writer.written)
	limit, raisedAt := 512.0, time.Time{}
	n.live(20*time.Second, func(d time.Duration) {
		a := n.writer.alarms
		if len(a) > 0 && limit == 512 && n.now.Sub(a[0].status.Alarm.Time.Time) >= 200*time.Millisecond {
			limit, raisedAt = 1024, n.now
		}
		hold(min(100+50*d.Seconds(), 700), 0, limit)
	})
	if raisedAt.IsZero() || len(n.writer.alarms) != 1 {
		t.Fatalf("%d alarms", len(n.writer.alarms))
	}
	if got := n.loop.alarms.horizon.Before(0, n.now); got != 300*time.Millisecond { // and the margin
		t.Errorf("the horizon is %s", got)
	}
	if len(n.writer.written) == written {
		t.Fatal("no snapshot follows")
	}
	last := n.writer.written[len(n.writer.written)-1].status
	if last.Alarm == nil || last.Alarm.Sequence != n.writer.alarms[0].status.Alarm.Sequence ||
		last.Containers[0].Limit.String() != "1Gi" {
		t.Errorf("the snapshot that follows: %+v", last)
	}
}

// TestAnAlarmIsLost: it is raised again, once a second at most.
func TestAnAlarmIsLost(t *testing.T) {
	n, hold := rescueNode(t)
	n.writer.fails = errors.New("the API server is away")
	n.live(20*time.Second, func(d time.Duration) { hold(min(300+20*d.Seconds(), 511.5), 0, 512) })
	if tries := len(n.writer.alarms); tries < 1 || tries > 12 {
		t.Errorf("%d tries", tries)
	}
	for i := 1; i < len(n.writer.alarms); i++ {
		if gap := n.writer.alarms[i].status.Alarm.Time.Sub(n.writer.alarms[i-1].status.Alarm.Time.Time); gap < time.Second {
			t.Errorf("try %d comes %s after the one before", i, gap)
		}
	}
}

// TestAlarmsOfANode: are bounded, however many containers are about to reach their limits, and those that had to wait
// come later.
func TestAlarmsOfANode(t *testing.T) {
	const containers = 30
	n := newNode(t)
	n.loop.Rescues = everywhere
	for i := range containers {
		n.set(uidOf(i), idOf(i+1), 30*memory.MiB, 0, 100+i)
		n.tell(uidOf(i), idOf(i+1), "")
	}
	n.live(40*time.Second, func(time.Duration) {})
	n.live(10*time.Second, func(d time.Duration) {
		for i := range containers {
			n.holds(uidOf(i), idOf(i+1), min(30+memory.Bytes(10*d.Seconds()), 127)*memory.MiB, 0, 128*memory.MiB)
		}
		if got := len(n.writer.alarms); got > maxAlarms+int(d.Seconds()) {
			t.Fatalf("%d alarms within %s", got, d)
		}
	})
	if got := len(n.writer.alarms); got < maxAlarms {
		t.Errorf("%d alarms", got)
	}
}

// TestAlarmsOfAPodLimit: what the pod's limit holds no resize of the container helps.
func TestAlarmsOfAPodLimit(t *testing.T) {
	n, hold := rescueNode(t)
	limit := "memory/kubepods/burstable/pod" + string(uidOf(1)) + "/memory.limit_in_bytes"
	n.cgroups[limit] = &fstest.MapFile{Data: []byte(strconv.FormatInt(int64(400*memory.MiB), 10))}
	n.live(time.Minute, func(d time.Duration) { hold(min(100+50*d.Seconds(), 399), 0, 512) })
	if len(n.writer.alarms) != 0 {
		t.Errorf("%+v", n.writer.alarms[0].status.Alarm)
	}
}

// TestAKnownHeap: a heap that grows to a cap that fits is no alarm.
func TestAKnownHeap(t *testing.T) {
	n, hold := rescueNode(t)
	quantity := func(mib int64) resource.Quantity { return *resource.NewQuantity(mib<<20, resource.BinarySI) }
	most := quantity(400)
	c := n.loop.containers[idOf(1)]
	c.finding = &Finding{
		Runtime: &v1alpha1.InspectedRuntime{Type: "JVM", MaxHeap: &most},
		Memory: &v1alpha1.MemoryParts{Resident: quantity(100), Parts: []v1alpha1.MemoryPart{
			{Name: "heap", Group: v1alpha1.PartHeap, Resident: quantity(20)},
			{Name: "metaspace", Group: v1alpha1.PartNative, Resident: quantity(80)},
		}},
	}
	c.lastInspected = n.now
	if got := c.ceiling(n.now); got != 480*memory.MiB {
		t.Errorf("needs %s at most", got)
	}
	n.live(20*time.Second, func(d time.Duration) { hold(min(100+100*d.Seconds(), 478), 0, 512) })
	if len(n.writer.alarms) != 0 {
		t.Errorf("%+v", n.writer.alarms[0].status.Alarm)
	}
	c.finding.CollectAt = 300 * memory.MiB
	if got := c.ceiling(n.now); got != 480*memory.MiB {
		t.Errorf("an option counts before what the runtime reports: %s", got)
	}
	if c.finding.Runtime = nil; c.ceiling(n.now) != 380*memory.MiB {
		t.Errorf("by its options it needs %s at most", c.ceiling(n.now))
	}
	if got := c.ceiling(n.now.Add(inspectedFor)); got != 0 {
		t.Errorf("of an old inspection %s is believed", got)
	}
}

// rescueNode2 is [rescueNode] with cgroup v2, of which memory.high and the number of kills differ.
func rescueNode2(t *testing.T) (n *node, hold func(usage, file, limit, high float64, kills int)) {
	t.Helper()
	n = newNode(t)
	clear(n.cgroups)
	n.cgroups["cgroup.controllers"] = &fstest.MapFile{Data: []byte("cpu memory\n")}
	n.cgroups["kubepods/burstable/cgroup.procs"] = &fstest.MapFile{}
	n.restart()
	n.loop.Rescues = everywhere
	pod := "kubepods/burstable/pod" + string(uidOf(1))
	hold = func(usage, file, limit, high float64, kills int) {
		for name, text := range map[string]string{
			"/memory.current": mebibytes(usage), "/memory.max": "max\n", "/" + idOf(1) + "/memory.current": mebibytes(usage),
			"/" + idOf(1) + "/memory.max": mebibytes(limit), "/" + idOf(1) + "/memory.high": mebibytes(high),
			"/" + idOf(1) + "/memory.stat":   "anon 0\ninactive_file " + mebibytes(file/2) + "active_file " + mebibytes(file/2),
			"/" + idOf(1) + "/memory.events": fmt.Sprintf("low 0\nhigh 5\nmax 7\noom 1\noom_kill %d\n", kills),
			"/" + idOf(1) + "/cgroup.procs":  "",
		} {
			n.cgroups[pod+name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	n.tell(uidOf(1), idOf(1), "")
	n.live(40*time.Second, func(time.Duration) { hold(100, 0, 512, 4096, 0) })
	return n, hold
}

func mebibytes(n float64) string { return strconv.FormatInt(int64(n*float64(memory.MiB)), 10) + "\n" }

// TestRescueOnCgroupV2: what files of version 2 report gives the same alarms.
func TestRescueOnCgroupV2(t *testing.T) {
	for name, c := range map[string]struct {
		usage      func(seconds float64) float64
		file, high float64
		want       int
	}{
		"a ramp":                   {usage: func(s float64) float64 { return min(100+100*s, 511) }, high: 4096, want: 1},
		"page cache":               {usage: func(s float64) float64 { return min(200+100*s, 511) }, file: 300, high: 4096},
		"slowed down, memory.high": {usage: func(s float64) float64 { return min(100+100*s, 460) }, high: 460, want: 1},
		"below memory.high":        {usage: func(s float64) float64 { return min(100+50*s, 400) }, high: 460},
		// as with a small request and a memoryThrottlingFactor below 0.5
		"slow below half of the limit": {usage: func(s float64) float64 { return min(100+50*s, 220) }, high: 220},
		"slow at half of the limit":    {usage: func(s float64) float64 { return min(100+50*s, 260) }, high: 260, want: 1},
		"and goes on":                  {usage: func(s float64) float64 { return min(200+5*s, 270) }, high: 220, want: 1},
	} {
		n, hold := rescueNode2(t)
		n.live(20*time.Second, func(d time.Duration) { hold(c.usage(d.Seconds()), c.file, 512, c.high, 0) })
		if len(n.writer.alarms) != c.want {
			t.Errorf("%s: %d alarms, want %d", name, len(n.writer.alarms), c.want)
			continue
		}
		for _, w := range n.writer.alarms {
			a := rescue.FromAPI(w.status.Alarm)
			if !rescue.Near(a.Demand, a.Limit) {
				t.Errorf("%s: the manager does not believe an alarm at %s", name, a.Demand)
			}
			left := time.Duration(float64(a.Limit-a.Demand) / float64(a.PerSecond) * float64(time.Second))
			if a.Limit != 512*memory.MiB || w.status.CgroupVersion != "v2" || (a.Left-left).Abs() > 10*time.Millisecond {
				t.Errorf("%s: %+v", name, a)
			}
		}
	}
}

// TestKillsOnCgroupV2: an alarm follows each ramp to the limit, and a higher limit is found.
func TestKillsOnCgroupV2(t *testing.T) {
	n, hold := rescueNode2(t)
	for kills := range 3 {
		n.live(10*time.Second, func(time.Duration) { hold(100, 0, 512, 4096, kills) })
		n.live(15*time.Second, func(d time.Duration) { hold(min(100+50*d.Seconds(), 511), 0, 512, 4096, kills) })
	}
	if len(n.writer.alarms) != 3 {
		t.Fatalf("%d alarms before 3 kills", len(n.writer.alarms))
	}
	n.live(20*time.Second, func(d time.Duration) {
		limit := 512.0
		if a := n.writer.alarms; len(a) > 3 && n.now.Sub(a[3].status.Alarm.Time.Time) >= 200*time.Millisecond {
			limit = 2048
		}
		hold(100+50*d.Seconds(), 0, limit, 4096, 3)
	})
	if got := n.loop.alarms.horizon.Before(0, n.now); len(n.writer.alarms) != 4 || got != 300*time.Millisecond {
		t.Errorf("%d alarms, the horizon is %s", len(n.writer.alarms), got)
	}
}

// TestReadingsForRescues: a container that may be lent memory is read twice a second, of which one reading a second is
// of all files, as without rescues.
func TestReadingsForRescues(t *testing.T) {
	n, hold := rescueNode(t)
	hold(350, 0, 512)
	n.pass(20 * time.Second) // until it no longer grows
	of := func(kind string) float64 {
		var m dto.Metric
		if err := n.loop.Metrics.readings.WithLabelValues(kind).Write(&m); err != nil {
			t.Fatal(err)
		}
		return m.GetCounter().GetValue()
	}
	full, usage := of("full"), of("usage")
	n.pass(time.Minute)
	if full, usage = of("full")-full, of("usage")-usage; full < 55 || full > 65 || full+usage < 115 {
		t.Errorf("%v readings of all files and %v of usage in a minute", full, usage)
	}
}

// TestOthersMakeNoRescueSlower: sandboxes of pods, and containers that get no loan.
func TestOthersMakeNoRescueSlower(t *testing.T) {
	n, _ := rescueNode(t)
	n.loop.Rescues = func(namespace string) bool { return namespace == "shop" }
	for i := range 300 {
		n.set(uidOf(i+2), idOf(i+2), 30*memory.MiB, 0, 1000+i)
	}
	n.pass(20 * time.Second)
	if len(n.loop.containers) != 301 || n.loop.alarms.lendable != 1 {
		t.Errorf("%d of %d containers may be lent memory", n.loop.alarms.lendable, len(n.loop.containers))
	}
	maps.Copy(n.loop.alarms.imminent, n.loop.containers)
	if every := n.loop.Every(); every != TickEvery {
		t.Errorf("containers about to reach their limit are read every %s", every)
	}
}

// BenchmarkReadImminent: a tick for one container of a node of 110 that is about to reach its limit.
func BenchmarkReadImminent(b *testing.B) {
	n := newNode(b)
	n.loop.Rescues = everywhere
	for i := range 110 {
		n.set(uidOf(i), idOf(i+1), 30*memory.MiB, 0, 100+i)
		n.tell(uidOf(i), idOf(i+1), "")
	}
	n.pass(time.Minute)
	n.loop.alarms.imminent = map[string]*container{idOf(1): n.loop.containers[idOf(1)]}
	b.ReportAllocs()
	for range b.N {
		n.loop.readImminent(n.now)
		n.loop.alarms.imminent[idOf(1)] = n.loop.containers[idOf(1)]
		n.now = n.now.Add(50 * time.Millisecond)
	}
}
