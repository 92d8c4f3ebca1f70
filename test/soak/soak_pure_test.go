// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestSlope(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for name, c := range map[string]struct {
		perHour, noise float64
		grows          bool
	}{
		"level":          {0, 2, false},
		"grows a little": {3, 0.5, true},
		"falls":          {-3, 0.5, false},
	} {
		var series []Point
		for at := time.Duration(0); at < time.Hour; at += 15 * time.Second {
			series = append(series, Point{at, 40 + c.perHour*at.Hours() + c.noise*rng.NormFloat64()})
		}
		got, ok := Slope(series)
		if !ok {
			t.Fatalf("%s: no slope of an hour", name)
		}
		if got.Low > c.perHour || got.High < c.perHour {
			t.Errorf("%s: %.2f per hour is not within %.2f and %.2f", name, c.perHour, got.Low, got.High)
		}
		if grows := got.Low > 0; grows != c.grows {
			t.Errorf("%s: from %.2f to %.2f per hour, want growth %v", name, got.Low, got.High, c.grows)
		}
	}
	if _, ok := Slope([]Point{{0, 1}, {time.Minute, 2}}); ok {
		t.Error("a slope of two points")
	}
}

// TestQuantile compares with tables of Student's t.
func TestQuantile(t *testing.T) {
	for freedom, want := range map[float64]float64{4: 2.776, 10: 2.228, 20: 2.086, 60: 2.000} {
		if got := quantile(freedom); math.Abs(got-want)/want > 0.01 {
			t.Errorf("%.0f degrees of freedom: %.3f, want %.3f", freedom, got, want)
		}
	}
}

func TestReadKill(t *testing.T) {
	const uid = "0d0b5a0e-3b1e-4f3c-9a53-6f7c1d3f2a10"
	id := strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		line string
		want *Kill
	}{
		"cgroup v1, with a record's head": {
			"6,1234,844505229,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=" + id +
				",mems_allowed=0,oom_memcg=/memfit-lab/kubepods/burstable/pod" + uid + "/" + id +
				",task_memcg=/memfit-lab/kubepods/burstable/pod" + uid + "/" + id + ",task=goprobe,pid=3517,uid=65532",
			&Kill{uid, id, "goprobe"},
		},
		"the pod's cgroup was full": {
			"[   12.3] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/kubepods/pod" +
				uid +
				",task_memcg=/kubepods/pod" + uid + "/" + id + ",task=python3,pid=1,uid=0",
			&Kill{uid, id, "python3"},
		},
		"no pod": {
			"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/art,task_memcg=/art,task=sales,pid=3517,uid=0", nil,
		},
		"the line after it": {"Memory cgroup out of memory: Killed process 3517 (goprobe) total-vm:1kB", nil},
	} {
		if got, want := KilledLine(c.line), name == "the line after it"; got != want {
			t.Errorf("%s: KilledLine returned %v", name, got)
		}
		got, ok := ReadKill(c.line)
		if ok != (c.want != nil) || ok && got != *c.want {
			t.Errorf("%s: %+v %v, want %+v", name, got, ok, c.want)
		}
	}
}
