// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/build"
)

// release is a pod of a release, created so many hours after the first one.
func release(name, version string, hour int) *corev1.Pod {
	pod := build.Pod("shop", name).On("node-1").Container(
		"app", build.Limit("1Gi"), build.Command("app", version), build.Started(began.Add(time.Duration(hour)*time.Hour)),
	).Obj()
	pod.UID, pod.CreationTimestamp = types.UID(name), metav1.NewTime(began.Add(time.Duration(hour)*time.Hour))
	return pod
}

func snapshotOf(pods ...*corev1.Pod) *Snapshot {
	pods = slices.SortedFunc(slices.Values(pods), NewestFirst)
	s := &Snapshot{
		Owner: memory.Workload{
			Ref: memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, UID: "web",
		},
		Profile: governing(build.Profile("shop", "web", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingInPlace))),
		Pods:    pods, Governed: pods, Template: pods[0],
	}
	for _, pod := range pods {
		s.Events.Observations = append(s.Events.Observations, oom.Observe(pod)...)
	}
	return s
}

func sampleOf(pod *corev1.Pod, container string, demand memory.Bytes, at time.Time) memory.Sample {
	return memory.Sample{
		Container: memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: container},
		Time:      at, Started: pod.CreationTimestamp.UTC(),
		RSS: demand, HasRSS: true, Exact: true, WorkingSet: demand, Usage: demand,
	}
}

// TestWhatRunsIsNotForgotten: four releases run, as with draining pods or OnDelete, and what is known of the newest is
// its own.
func TestWhatRunsIsNotForgotten(t *testing.T) {
	pods := []*corev1.Pod{
		release("web-1", "1", 0), release("web-2", "2", 1), release("web-3", "3", 2), release("web-4", "4", 3),
	}
	newest := inject.ProgramOf(pods[3], "app", false).ID
	proven := rollout.Lowering{
		Container: "app", Program: newest, From: memory.Size{Limit: 2 * memory.GiB}, To: memory.Size{Limit: memory.GiB},
		At: began, Proven: true,
	}
	st, now := NewState(), began.Add(4*time.Hour)
	st.rollout.Lowerings = []rollout.Lowering{proven}
	for range 20 {
		now = now.Add(time.Minute)
		s := snapshotOf(pods...)
		s.Events.Samples = []memory.Sample{sampleOf(s.Template, "app", 700*memory.MiB, now)}
		st, _ = Step(st, s, now)
	}
	e := st.newest("app")
	if e.Program != newest || e.history.Samples() != 20 || len(st.containers["app"]) != programsKept {
		t.Errorf("of %d programs the newest is %s with %d samples, want %d, %s and 20", len(st.containers["app"]), e.Program,
			e.history.Samples(), programsKept, newest)
	}
	if !slices.Contains(st.rollout.Lowerings, proven) {
		t.Errorf("lowerings are %+v, want the one that is proven", st.rollout.Lowerings)
	}
}

// TestWhichProgramsAreKept: known are those remembered, last seen first, and running those of the pods, newest first,
// with "-" for a pod that is being deleted.
func TestWhichProgramsAreKept(t *testing.T) {
	for name, tc := range map[string]struct{ known, running, want string }{
		"to roll back to":                          {"b a", "c", "b a c"},
		"the last seen":                            {"c b a", "d", "c b d"},
		"what runs before what ran":                {"c b", "d c a c", "a c d"},
		"the most pods":                            {"", "d c b a b a", "a b d"},
		"what is known":                            {"c b", "d c b a a", "b c d"},
		"one to roll back to before a draining":    {"d c", "e d -b", "c d e"},
		"the newest pod's, whatever becomes of it": {"c b a", "-d c b a", "b c d"},
	} {
		t.Run(name, func(t *testing.T) {
			st, now := NewState(), began.Add(100*time.Hour)
			for i, program := range slices.Backward(strings.Fields(tc.known)) {
				now = now.Add(time.Minute)
				st.readPrograms(snapshotOf(release("known-"+program, program, 50-i)), now)
			}
			var pods []*corev1.Pod
			for i, program := range strings.Fields(tc.running) {
				program, leaving := strings.CutPrefix(program, "-")
				pod := release("web-"+string(rune('a'+i)), program, 90-i)
				if leaving {
					pod.DeletionTimestamp = new(metav1.NewTime(now))
				}
				pods = append(pods, pod)
			}
			for range 3 {
				now = now.Add(time.Minute)
				st.readPrograms(snapshotOf(pods...), now)
				var got []string
				for _, program := range []string{"a", "b", "c", "d", "e"} {
					if st.evidenceOf("app", inject.ProgramOf(release("x", program, 0), "app", false).ID) != nil {
						got = append(got, program)
					}
				}
				want := strings.Fields(tc.want)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("kept are %v, want %v", got, want)
				}
			}
		})
	}
}

// TestAPodOfAFurtherProgramIsLeftAlone: nothing of its program is kept, so that it has no lower limit to watch.
func TestAPodOfAFurtherProgramIsLeftAlone(t *testing.T) {
	pods := []*corev1.Pod{
		release("web-1", "1", 0), release("web-2", "2", 1), release("web-3", "3", 2), release("web-4", "4", 3),
	}
	st := NewState()
	st, _ = Step(st, snapshotOf(pods[1:]...), began.Add(4*time.Hour))
	st, _ = Step(st, snapshotOf(pods...), began.Add(5*time.Hour))
	st, e := Step(st, snapshotOf(pods...), began.Add(6*time.Hour))
	if st.evidenceOf("app", inject.ProgramOf(pods[0], "app", false).ID) != nil {
		t.Fatal("the program of the oldest pod is kept")
	}
	if len(e.Actions)+len(st.rollout.Lowerings)+len(st.rollout.Steps) > 0 {
		t.Errorf("actions %+v, lowerings %+v, steps %+v", e.Actions, st.rollout.Lowerings, st.rollout.Steps)
	}
}

// TestAContainerThatTheNewestPodDoesNotHaveIsDecidedFor: release 2 renames app and drops cache, and most pods are of
// release 1. The limit of cache was lowered from 512Mi to 200Mi a month ago, and proven. Then it is killed.
func TestAContainerThatTheNewestPodDoesNotHaveIsDecidedFor(t *testing.T) {
	old := build.Pod("shop", "web-1").On("node-1").
		Container("app", build.Limit("1Gi"), build.Started(began)).
		Container("cache", build.Limit("200Mi"), build.Request("100Mi"), build.Started(began))
	created := began.Add(14 * 24 * time.Hour)
	pods := func() []*corev1.Pod {
		first := old.Obj()
		first.UID, first.CreationTimestamp = "web-1", metav1.NewTime(began)
		next := build.Pod("shop", "web-2").On("node-1").
			Container("web", build.Limit("1Gi"), build.Started(created)).Obj()
		next.UID, next.CreationTimestamp = "web-2", metav1.NewTime(created)
		return []*corev1.Pod{first, next}
	}
	st, now := NewState(), created.Add(time.Hour)
	st.rollout.Lowerings = []rollout.Lowering{{
		Container: "cache", Program: inject.ProgramOf(pods()[0], "cache", false).ID,
		From: sizeMi(100, 512), To: sizeMi(100, 200), At: began, Proven: true,
	}}
	s := snapshotOf(pods()...)
	s.Events.Samples = []memory.Sample{sampleOf(pods()[0], "cache", 190*memory.MiB, now)}
	st, e := Step(st, s, now)
	var shown []string
	for _, c := range e.Status.Containers {
		shown = append(shown, c.Container)
	}
	if want := []string{"web", "app", "cache"}; !slices.Equal(shown, want) {
		t.Errorf("shown are %v, want %v", shown, want)
	}
	now = now.Add(time.Minute)
	old.Container("cache", build.OOMKilled(now))
	_, e = Step(st, snapshotOf(pods()...), now)
	i := slices.IndexFunc(e.Actions, func(a rollout.Action) bool { return a.UID == "web-1" })
	if i < 0 || e.Actions[i].Sizes["cache"].Limit != 512*memory.MiB {
		t.Errorf("actions are %+v, want cache of web-1 to have 512Mi again", e.Actions)
	}
	offered := inject.OffersIn(e.Status.Containers)["cache"]
	if offered.Size.Limit != 512*memory.MiB || offered.Program != st.rollout.Lowerings[0].Program {
		t.Errorf("new pods of release 1 are offered %+v", offered)
	}
	s = snapshotOf(pods()...)
	for at := now.Add(-time.Hour); at.Before(now); at = at.Add(time.Minute) {
		s.Events.Samples = append(s.Events.Samples, sampleOf(pods()[0], "cache", 100*memory.MiB, at))
	}
	watched, _ := Step(NewState(), s, now)
	watched.newest("cache").HighestLimit = memory.GiB // it was resized to that
	_, e = Step(watched, snapshotOf(pods()...), now.Add(time.Minute))
	all, canaries := inject.OffersIn(e.Status.Containers)["cache"], inject.CanariesIn(e.Status.Containers)["cache"]
	if all.Size.Limit != memory.GiB || canaries.Size.Limit < all.Size.Limit {
		t.Errorf("the canary of release 2 lets release 1 have %s, and otherwise it gets %s", canaries.Size, all.Size)
	}
	gone := snapshotOf(pods()[1])
	if _, e = Step(st, gone, now.Add(time.Minute)); len(e.Status.Containers) != 1 {
		t.Errorf("%d containers are shown without pods of release 1, want one", len(e.Status.Containers))
	}
}
