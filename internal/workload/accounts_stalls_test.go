// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
)

// sawStall is what an agent writes of a stall.
func sawStall(at time.Time) *v1alpha1.StallSnapshot {
	k := sawKill(at, "MainProcess")
	return &v1alpha1.StallSnapshot{
		Started: metav1.NewTime(at), Anonymous: quantity("480Mi"), MajorFaultsPerSecond: 40,
		MinuteBefore: v1alpha1.MinuteBefore{
			Summary: "-", ContainerLimit: quantity("512Mi"), PodLimit: quantity("768Mi"), Usage: k.Usage,
			GrowthMilliseconds: k.GrowthMilliseconds, GrowthPerSecond: k.GrowthPerSecond, Memory: k.Memory,
		},
	}
}

const wantStallAccount = "the kernel capped usage at 512Mi, the limit of its container; 488Mi were in use, after " +
	"growth by 9Mi/s for 12s; filled by V8 heap 301Mi, glibc arenas 96Mi, of which 61Mi is free, program and " +
	"libraries 40Mi"

// TestAnAgentTellsOfAStall: whoever comes first, record, condition and an event have the minute before, and each is
// told once.
func TestAnAgentTellsOfAStall(t *testing.T) {
	at := began.Add(time.Hour)
	pod := build.Pod("shop", "web-1").On("node-1").
		Container("app", build.Limit("512Mi"), build.Started(began)).Obj()
	pod.CreationTimestamp, pod.UID = metav1.NewTime(began), "u1"
	ref := memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "u1", Container: "app"}
	seen := func(node string, saw *v1alpha1.StallSnapshot) *Snapshot {
		s := killedPod(pod, "", nil)
		if saw != nil {
			s.Snapshots = map[types.UID]*v1alpha1.MemorySnapshot{pod.UID: {Status: v1alpha1.MemorySnapshotStatus{
				NodeName: node, Containers: []v1alpha1.ContainerSnapshot{{Container: "app", LastStall: saw}},
			}}}
		}
		return s
	}
	// stall goes on until the kubelet's numbers show it, with what the agent writes; it returns the events of a reason.
	stall := func(node string, saw *v1alpha1.StallSnapshot) (state *State, e Effects, notes []string) {
		state, _ = Step(NewState(), seen("", nil), began.Add(time.Minute))
		for i := range 12 {
			now := at.Add(time.Duration(i) * 15 * time.Second)
			s := seen(node, saw)
			s.Events.Source = "kubelet"
			s.Events.Samples = []memory.Sample{{
				Container: ref, Time: now, Started: began, Usage: 510 * memory.MiB, RSS: 480 * memory.MiB, HasRSS: true,
				Exact:       true,
				MajorFaults: int64(600 * i), HasMajorFaults: true,
			}}
			state, e = Step(state, s, now)
			notes = append(notes, eventsOf(e, v1alpha1.EventMemoryStalled)...)
			notes = append(notes, eventsOf(e, v1alpha1.EventStallExplained)...)
		}
		return state, e, notes
	}
	condition := func(e Effects) string {
		for _, c := range e.Status.Conditions {
			if c.Type == v1alpha1.ConditionMemoryStalled {
				return c.Message
			}
		}
		return ""
	}

	// together
	_, e, notes := stall("node-1", sawStall(at))
	if len(notes) != 1 || !strings.HasSuffix(notes[0], "; "+wantStallAccount) {
		t.Errorf("%q", notes)
	}
	if e.Status.Stalls != 1 || !strings.HasSuffix(e.Status.RecentStalls[0].Summary, wantStallAccount) ||
		!strings.HasSuffix(condition(e), wantStallAccount+"; a higher limit or a restart of the pod ends it") {
		t.Errorf("%d stalls: %+v; condition %q", e.Status.Stalls, e.Status.RecentStalls, condition(e))
	}

	// the agent later
	state, e, notes := stall("", nil)
	if len(notes) != 1 || strings.Contains(notes[0], "held it") || strings.Contains(condition(e), "held it") {
		t.Errorf("%q", notes)
	}
	later := at.Add(4 * time.Minute)
	next, e := Step(state, seen("node-1", sawStall(at)), later)
	if notes := eventsOf(e, v1alpha1.EventStallExplained); len(notes) != 1 ||
		!strings.HasPrefix(notes[0], "Container app has been stalled at its limit of 512Mi since ") ||
		!strings.HasSuffix(notes[0], wantStallAccount) {
		t.Errorf("%q", notes)
	}
	if e.Status.Stalls != 1 || len(eventsOf(e, v1alpha1.EventMemoryStalled)) != 0 {
		t.Errorf("counted again: %d", e.Status.Stalls)
	}
	if _, e = Step(next, seen("node-1", sawStall(at)), later.Add(time.Minute)); len(e.Events) != 0 {
		t.Errorf("the same once more: %+v", e.Events)
	}

	// the agent of another node is not heard, and nothing is counted while no sample of the instance is known
	if _, _, notes := stall("node-2", sawStall(at)); len(notes) != 1 || strings.Contains(notes[0], "held it") {
		t.Errorf("%q", notes)
	}
	state, _ = Step(NewState(), seen("", nil), began.Add(time.Minute))
	if _, e = Step(state, seen("node-1", sawStall(at)), at); e.Status.Stalls != 0 {
		t.Errorf("%d stalls by the word of an agent", e.Status.Stalls)
	}
}

// TestAnAgentIsFirst: a stall counts, and the limit is raised, as soon as the agent reports it, half a minute after it
// began, and it counts once when samples show it, too.
func TestAnAgentIsFirst(t *testing.T) {
	at := began.Add(time.Hour)
	pod := build.Pod("shop", "web-1").On("node-1").
		Container("app", build.Limit("512Mi"), build.Started(began)).Obj()
	pod.CreationTimestamp, pod.UID = metav1.NewTime(began), "u1"
	ref := memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "u1", Container: "app"}
	state, _ := Step(NewState(), killedPod(pod, "", nil), began.Add(time.Minute))
	for i := range 12 {
		now := at.Add(time.Duration(i) * 15 * time.Second)
		s := killedPod(pod, "", nil)
		s.Events.Source = "kubelet"
		s.Events.Samples = []memory.Sample{{
			Container: ref, Time: now, Started: began, Usage: 510 * memory.MiB, RSS: 480 * memory.MiB, HasRSS: true,
			Exact: true, MajorFaults: int64(600 * i), HasMajorFaults: true,
		}}
		known := now.Sub(at) >= 35*time.Second
		if known {
			s.Snapshots = map[types.UID]*v1alpha1.MemorySnapshot{pod.UID: {Status: v1alpha1.MemorySnapshotStatus{
				NodeName:   "node-1",
				Containers: []v1alpha1.ContainerSnapshot{{Container: "app", LastStall: sawStall(at)}},
			}}}
		}
		var e Effects
		state, e = Step(state, s, now)
		want := int64(0)
		if known {
			want = 1
		}
		if e.Status.Stalls != want {
			t.Fatalf("%d stalls %s after it began, want %d", e.Status.Stalls, now.Sub(at), want)
		}
		if c := e.Status.Containers[0]; known && (c.Recommended == nil || c.Recommended.Limit.Cmp(*quantity("512Mi")) <= 0) {
			t.Fatalf("%s after it began the limit is not raised: %+v", now.Sub(at), c)
		}
	}
}

// TestWhatHeldAStall: the lowest of memory.high and both limits.
func TestWhatHeldAStall(t *testing.T) {
	own := v1alpha1.MinuteBefore{ContainerLimit: quantity("512Mi")}
	for want, s := range map[string]v1alpha1.StallSnapshot{
		"the kernel capped usage at 512Mi, the limit of its container; ": {MinuteBefore: own},
		"the kernel capped usage at 256Mi, the limit of its pod; ": {MinuteBefore: v1alpha1.MinuteBefore{
			ContainerLimit: quantity("512Mi"), PodLimit: quantity("256Mi"),
		}},
		"the kernel capped usage at 460Mi, its memory.high; ": {MinuteBefore: own, High: quantity("460Mi")},
		"": {},
	} {
		if got := stallAccount(&s); got != want+"no earlier data" {
			t.Error(got)
		}
	}
}
