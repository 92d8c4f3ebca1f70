// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/report"
	"github.com/memfit/memfit/test/budget"
	"github.com/memfit/memfit/test/build"
)

// killedPod is a workload of one pod whose container runs with 512Mi, and with what the agent of a node saw of its kill
// at that time.
func killedPod(pod *corev1.Pod, node string, kill *v1alpha1.KillSnapshot) *Snapshot {
	p := build.Profile("shop", "web", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingRecommend))
	s := &Snapshot{
		Owner: memory.Workload{
			Ref: memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, UID: "web",
		},
		Profile: &profile.Profile{
			Ref: v1alpha1.ProfileReference{Kind: "MemoryProfile", Name: "web"}, Namespace: "shop", Generation: 1, Spec: &p.Spec,
		},
		Pods: []*corev1.Pod{pod}, Governed: []*corev1.Pod{pod}, Template: pod,
		Events: PendingEvents{Observations: oom.Observe(pod)},
	}
	if kill != nil {
		s.Snapshots = map[types.UID]*v1alpha1.MemorySnapshot{pod.UID: {Status: v1alpha1.MemorySnapshotStatus{
			NodeName: node, Containers: []v1alpha1.ContainerSnapshot{{Container: "app", LastKill: kill}},
		}}}
	}
	return s
}

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

// sawKill is what an agent writes of a kill.
func sawKill(at time.Time, kind string) *v1alpha1.KillSnapshot {
	return &v1alpha1.KillSnapshot{
		Time: metav1.NewTime(at), Kind: kind, Evidence: "CounterRose", LastReadMillisecondsBefore: 250,
		Processes: []v1alpha1.ProcessDied{{Name: "node", PID: 1, Resident: quantity("460Mi")}},
		MinuteBefore: v1alpha1.MinuteBefore{
			Summary: "-", ContainerLimit: quantity("512Mi"), PodLimit: quantity("512Mi"),
			Usage: quantity("488Mi"), GrowthMilliseconds: 12000, GrowthPerSecond: quantity("9Mi"),
			Memory: &v1alpha1.MemoryParts{Resident: *quantity("470Mi"), Parts: []v1alpha1.MemoryPart{
				{Name: "V8 heap", Resident: *quantity("301Mi")},
				{Name: "glibc arenas", Resident: *quantity("96Mi"), Free: quantity("61Mi")},
				{Name: "program and libraries", Resident: *quantity("40Mi")}, {Name: "thread stacks", Resident: *quantity("1Mi")},
			}},
		},
	}
}

const wantAccount = `"node" (460Mi resident) died; 250ms before, 488Mi were in use, after growth by 9Mi/s for 12s; ` +
	`filled by V8 heap 301Mi, glibc arenas 96Mi, of which 61Mi is free, program and libraries 40Mi`

// eventsOf are the notes of events of a reason about pods.
func eventsOf(e Effects, reason string) (notes []string) {
	for _, event := range e.Events {
		if event.Regarding.Kind == "Pod" && event.Reason == reason {
			notes = append(notes, event.Note)
		}
	}
	return notes
}

// aboutToDie is a pod whose container is killed at that time, and the state before that.
func aboutToDie(at time.Time) (before *State, pod *corev1.Pod) {
	pod = build.Pod("shop", "web-1").On("node-1").
		Container("app", build.Limit("512Mi"), build.Started(began), build.OOMKilled(at)).Obj()
	pod.CreationTimestamp, pod.UID = metav1.NewTime(began), "u1"
	alive := pod.DeepCopy()
	alive.Status.ContainerStatuses[0].RestartCount = 0
	alive.Status.ContainerStatuses[0].LastTerminationState = corev1.ContainerState{}
	before, _ = Step(NewState(), killedPod(alive, "", nil), began.Add(time.Minute))
	return before, pod
}

// TestAKillCountsWithTheLimitOfItsOwnPod: a child dies in a canary with 256Mi, to which nothing else happened, while
// the youngest pod was created with 512Mi.
func TestAKillCountsWithTheLimitOfItsOwnPod(t *testing.T) {
	pod := func(name, limit string, created time.Time) *corev1.Pod {
		p := build.Pod("shop", name).On("node-1").Container("app", build.Limit(limit), build.Started(created)).Obj()
		p.CreationTimestamp, p.UID = metav1.NewTime(created), types.UID(name)
		return p
	}
	canary, young := pod("web-1", "256Mi", began), pod("web-2", "512Mi", began.Add(time.Minute))
	at := began.Add(time.Hour)
	read := memory.KillCounter{
		Container: memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: canary.UID, Container: "app"},
		Count:     1, Time: at,
	}
	saw := sawKill(at, childProcess)
	saw.LimitsChanged = true // so that the agent does not know which one it died at
	look := func(saw *v1alpha1.KillSnapshot, counters ...memory.KillCounter) *Snapshot {
		s := killedPod(canary, "node-1", saw)
		s.Pods = []*corev1.Pod{young, canary}
		s.Governed, s.Template = s.Pods, young
		s.Events.Observations = append(s.Events.Observations, oom.Observe(young)...)
		s.Events.Counters = counters
		return s
	}
	older := killedPod(pod("web-0", "512Mi", began.Add(-time.Hour)), "", nil)
	unseen, _ := Step(NewState(), older, began.Add(-time.Minute))
	before, _ := Step(unseen, look(nil), at.Add(-time.Minute))
	for name, tc := range map[string]struct {
		before *State
		now    *Snapshot
	}{
		"the kernel's counter":                             {before, look(nil, read)},
		"the kernel's counter, when the pod is first seen": {unseen, look(nil, read)},
		"an agent that does not know the limit":            {before, look(saw)},
	} {
		t.Run(name, func(t *testing.T) {
			_, e := Step(tc.before, tc.now, at.Add(5*time.Second))
			if len(e.Kills) != 1 || e.Kills[0].Kind != memory.OOMChildProcess || e.Kills[0].Limit != 256*memory.MiB {
				t.Errorf("kills %+v, want one of a child at 256Mi", e.Kills)
			}
		})
	}
}

// TestAKillWhileItsPodIsRaisedCountsWithWhatThePodHadBefore: also where pods were created with another limit since, and
// with a third one later.
func TestAKillWhileItsPodIsRaisedCountsWithWhatThePodHadBefore(t *testing.T) {
	pod := func(name, limit string, created time.Time, options ...build.ContainerOption) *corev1.Pod {
		p := build.Pod("shop", name).
			Container("app", append([]build.ContainerOption{build.Limit(limit), build.Started(created)}, options...)...).Obj()
		p.CreationTimestamp, p.UID = metav1.NewTime(created), types.UID(name)
		return p
	}
	second, third := began.Add(time.Minute), began.Add(2*time.Minute)
	state := NewState()
	for _, p := range []*corev1.Pod{
		pod("web-0", "64Mi", began.Add(-time.Minute)), pod("web-1", "64Mi", began), pod("web-2", "256Mi", second),
		pod("web-3", "512Mi", third),
	} {
		state, _ = Step(state, killedPod(p, "", nil), p.CreationTimestamp.Add(time.Second))
	}
	died := third.Add(time.Minute)
	raised := pod("web-1", "512Mi", began, build.OOMKilled(died))
	raised.Generation = 2
	_, e := Step(state, killedPod(raised, "", nil), died.Add(time.Second))
	if len(e.Kills) != 1 || e.Kills[0].Limit != 64*memory.MiB {
		t.Errorf("kills %+v, want one at 64Mi", e.Kills)
	}
}

// TestAnAgentTellsOfAKill: whoever comes first, the record and an event have the minute before, and each is told once.
func TestAnAgentTellsOfAKill(t *testing.T) {
	at := began.Add(time.Hour)
	state, pod := aboutToDie(at)

	// together
	next, e := Step(state, killedPod(pod, "node-1", sawKill(at.Add(time.Second), "MainProcess")), at.Add(5*time.Second))
	if notes := eventsOf(e, v1alpha1.EventOOMKilled); len(notes) != 1 || !strings.HasSuffix(notes[0], "; "+wantAccount) {
		t.Errorf("%q", notes)
	}
	if notes := eventsOf(e, v1alpha1.EventOOMKillExplained); len(notes) != 0 {
		t.Errorf("told twice: %q", notes)
	}
	record := e.Status.RecentOOMKills[0]
	if !strings.Contains(record.Summary, wantAccount) || record.Limit.String() != "512Mi" || e.Status.OOMKills != 1 {
		t.Errorf("%d kills, the last %+v", e.Status.OOMKills, record)
	}
	_, e = Step(next, killedPod(pod, "node-1", sawKill(at.Add(time.Second), "MainProcess")), at.Add(time.Minute))
	if len(e.Events) != 0 || e.Status.OOMKills != 1 {
		t.Errorf("the same once more: %+v", e.Events)
	}

	// the agent later
	next, e = Step(state, killedPod(pod, "", nil), at.Add(2*time.Second))
	if notes := eventsOf(e, v1alpha1.EventOOMKilled); len(notes) != 1 || strings.Contains(notes[0], "died;") {
		t.Errorf("%q", notes)
	}
	_, e = Step(next, killedPod(pod, "node-1", sawKill(at.Add(time.Second), "MainProcess")), at.Add(6*time.Second))
	want := "Container app was OOM-killed at its limit of 512Mi at " + at.UTC().Format(time.RFC3339) + ": " + wantAccount
	if notes := eventsOf(e, v1alpha1.EventOOMKillExplained); len(notes) != 1 || notes[0] != want {
		t.Errorf("%q, want %q", notes, want)
	}
	if len(eventsOf(e, v1alpha1.EventOOMKilled)) != 0 || e.Status.OOMKills != 1 {
		t.Errorf("counted again: %d", e.Status.OOMKills)
	}

	// the agent of another node is not heard
	_, e = Step(state, killedPod(pod, "node-2", sawKill(at.Add(time.Second), "MainProcess")), at.Add(5*time.Second))
	if notes := eventsOf(e, v1alpha1.EventOOMKilled); len(notes) != 1 || strings.Contains(notes[0], "died;") {
		t.Errorf("%q", notes)
	}
}

// TestAnAgentTellsOfAChildsKill: nothing in the pod's status does.
func TestAnAgentTellsOfAChildsKill(t *testing.T) {
	pod := build.Pod("shop", "web-1").On("node-1").
		Container("app", build.Limit("512Mi"), build.Started(began)).Obj()
	pod.CreationTimestamp, pod.UID = metav1.NewTime(began), "u1"
	state, _ := Step(NewState(), killedPod(pod, "", nil), began.Add(time.Minute))
	at := began.Add(time.Hour)
	_, e := Step(state, killedPod(pod, "node-1", sawKill(at, "ChildProcess")), at.Add(time.Second))
	notes := eventsOf(e, v1alpha1.EventOOMKilled)
	if len(notes) != 1 || e.Status.OOMKills != 1 || e.Status.RecentOOMKills[0].Kind != "ChildProcess" ||
		!strings.Contains(notes[0], "lost a child process to the OOM killer at its limit of 512Mi") ||
		!strings.Contains(notes[0], wantAccount) {
		t.Errorf("%d kills, %q", e.Status.OOMKills, notes)
	}
}

// TestTheEffectiveLimit: the kubelet shows what was asked for, and the agent what the kernel enforced.
func TestTheEffectiveLimit(t *testing.T) {
	at := began.Add(time.Hour)
	state, pod := aboutToDie(at)
	saw := sawKill(at.Add(time.Second), "MainProcess")
	saw.PodLimit = quantity("256Mi") // a resize that reached the container and not its pod
	for changed, want := range map[bool]string{false: "256Mi", true: "512Mi"} {
		saw.LimitsChanged = changed
		_, e := Step(state, killedPod(pod, "node-1", saw), at.Add(5*time.Second))
		if got := e.Status.RecentOOMKills[0].Limit.String(); got != want {
			t.Errorf("limits changed=%v: the record says %s, want %s", changed, got, want)
		}
	}
}

// TestWhoseKillItWas: on a node that is short of memory, the kernel's counters decide whether a kill was at the limit,
// and where no agent reports them, how much was in use. An agent alone makes no kill one by its node.
func TestWhoseKillItWas(t *testing.T) {
	at := began.Add(time.Hour)
	state, pod := aboutToDie(at)
	ref := memory.ContainerRef{Namespace: "shop", Pod: pod.Name, UID: pod.UID, Container: "app"}
	for name, tc := range map[string]struct {
		use     memory.Bytes // at the last sample
		calm    bool         // the node reports no MemoryPressure
		reached string       // what the agent reports; "-": no agent
		late    bool         // and later than the kubelet
		limit   bool         // it counts as one at the limit
		kept    bool         // what was recommended before the agent's report is kept
	}{
		"a fast start, no agent":                     {use: 100 * memory.MiB, reached: "-"},
		"an agent of before, which does not say it":  {use: 100 * memory.MiB},
		"an agent of later, which says another word": {use: 100 * memory.MiB, reached: "Perhaps"},
		"the limit was reached":                      {use: 100 * memory.MiB, reached: "Yes", limit: true},
		"the same, known later":                      {use: 100 * memory.MiB, reached: "Yes", late: true, limit: true},
		"close to the limit, no agent":               {use: 480 * memory.MiB, reached: "-", limit: true},
		"close to the limit, by the node":            {use: 480 * memory.MiB, reached: "No"},
		"by the node, known later":                   {use: 480 * memory.MiB, reached: "No", late: true, kept: true},
		"a claim about a node that is not short":     {use: 480 * memory.MiB, reached: "No", calm: true, limit: true},
	} {
		before := *state.Clone()
		alive := killedPod(pod, "", nil)
		alive.Events = PendingEvents{Samples: []memory.Sample{{
			Container: ref, Time: at.Add(-10 * time.Second), Started: began, Usage: tc.use, RSS: tc.use, HasRSS: true,
			WorkingSet: tc.use, Exact: true,
		}}}
		alive.Pods[0] = pod.DeepCopy()
		alive.Pods[0].Status.ContainerStatuses[0].RestartCount = 0
		alive.Pods[0].Status.ContainerStatuses[0].LastTerminationState = corev1.ContainerState{}
		alive.Governed = alive.Pods
		st, _ := Step(&before, alive, at.Add(-5*time.Second))
		saw := sawKill(at.Add(time.Second), "MainProcess")
		saw.LimitReached = tc.reached
		steps := []*v1alpha1.KillSnapshot{saw, saw}
		if tc.late {
			steps[0] = nil
		}
		if tc.reached == "-" {
			steps = []*v1alpha1.KillSnapshot{nil, nil}
		}
		var e Effects
		for i, kill := range steps {
			s := killedPod(pod, "node-1", kill)
			if !tc.calm {
				s.Facts.NodePressureSince = map[string]time.Time{"node-1": at.Add(10 * time.Second)}
			}
			st, e = Step(st, s, at.Add(time.Duration(12+i)*time.Second))
		}
		c := e.Status.Containers[0]
		raised := c.Recommended != nil && c.Recommended.Limit.Cmp(*quantity("512Mi")) > 0
		node := slices.Contains(c.Advice, report.NodeRanOut)
		if raised != (tc.limit || tc.kept) || node == tc.limit || e.Status.OOMKills != 1 {
			t.Errorf("%s: recommends %v, advice %q, %d kills; want a raise: %v", name, c.Recommended, c.Advice,
				e.Status.OOMKills, tc.limit)
		}
	}
}

// accountBudget is what putting an account together may take, per byte that the API allows an agent to write.
var accountBudget = budget.Budget{Bytes: 64 << 10, PerByte: 4, CPU: time.Second}

// FuzzAccount: an agent may write anything that the API takes.
func FuzzAccount(f *testing.F) {
	f.Add("node", int32(250), int32(12000), "V8 heap", int64(488<<20))
	f.Add("\n\r\t", int32(-1), int32(math.MaxInt32), strings.Repeat("\u754c", 64), int64(-1))
	f.Fuzz(func(t *testing.T, name string, read, grew int32, part string, usage int64) {
		k := sawKill(began, "MainProcess")
		k.Processes[0].Name, k.LastReadMillisecondsBefore, k.GrowthMilliseconds = name, read, grew
		k.Usage = resource.NewQuantity(usage, resource.BinarySI)
		for i := range k.Memory.Parts {
			k.Memory.Parts[i].Name = part
		}
		var got string
		stall := &v1alpha1.StallSnapshot{High: k.Usage, MinuteBefore: v1alpha1.MinuteBefore{
			Usage: k.Usage, ContainerLimit: k.Usage, GrowthMilliseconds: grew, GrowthPerSecond: k.Usage, Memory: k.Memory,
		}}
		for _, say := range []func() string{
			func() string { return killAccount(k) }, func() string { return stallAccount(stall) },
		} {
			budget.Check(t, accountBudget, len(name)+len(part), func() { got = say() })
			if len(got) > maxAccount || strings.ContainsAny(got, "\n\r") || !utf8.ValidString(got) {
				t.Errorf("%d bytes: %q", len(got), got)
			}
		}
	})
}

// TestAKillThatNobodySawComing still has an account, which says so.
func TestAKillThatNobodySawComing(t *testing.T) {
	if got := killAccount(&v1alpha1.KillSnapshot{}); got != "no earlier data" {
		t.Error(got)
	}
}

// TestKillsAreReportedAgainAfterARestart: a memfit that ended after it wrote the checkpoint may not have written its
// Events. The next one reports the kills of the last minutes again, as the same Events, and counts none twice.
func TestKillsAreReportedAgainAfterARestart(t *testing.T) {
	at := began.Add(time.Hour)
	before, pod := aboutToDie(at)
	state, first := Step(before, killedPod(pod, "node-1", nil), at.Add(5*time.Second))
	identities := func(e Effects) (all []string) {
		for _, event := range e.Events {
			if event.Reason == v1alpha1.EventOOMKilled {
				all = append(all, event.Regarding.FieldPath+" "+event.At.String()+" "+event.ID)
			}
		}
		return all
	}
	want := identities(first)
	if len(want) != 1 {
		t.Fatalf("%q", want)
	}
	for after, want := range map[time.Duration][]string{time.Minute: want, 5 * time.Minute: nil} {
		restarted := NewState()
		restarted.ledger = state.ledger.Clone()
		next, e := Step(restarted, killedPod(pod, "node-1", nil), at.Add(after))
		if got := identities(e); !slices.Equal(got, want) {
			t.Errorf("%s later: %q, want %q", after, got, want)
		}
		if len(e.Kills) != 0 || e.Status.OOMKills != 1 {
			t.Errorf("%s later: %d kills are new, %d in all", after, len(e.Kills), e.Status.OOMKills)
		}
		if _, e = Step(next, killedPod(pod, "node-1", nil), at.Add(after+time.Second)); len(identities(e)) != 0 {
			t.Errorf("%s later: reported at every step", after)
		}
	}
}
