// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraintindex"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/build"
)

// replicaOfWebhook is a webhook without a leader: it knows profiles, and the pods that failed.
func replicaOfWebhook(t *testing.T, mode v1alpha1.SizingMode) (*Injector, *clocktesting.FakePassiveClock) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	profile := build.Profile("ci", "steps", v1alpha1.RuntimeAuto)
	profile.Spec.Sizing.Mode = mode
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(build.Namespace("ci"), profile).Build()
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	resolver := policy.New(reader, nil)
	if err := resolver.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &Injector{
		Resolver: resolver, Reader: reader, Clock: clock,
		Kills: &PendingKills{
			Resolver: resolver, APIReader: &apiServer{}, Clock: clock,
			NodePressureSince: (&constraintindex.Index{}).NodePressureSince,
		},
		Metrics: NewMetrics(prometheus.NewRegistry()),
	}, clock
}

// liveOf is the API server that a webhook reads.
func liveOf(h *Injector) *apiServer {
	live, _ := h.Kills.APIReader.(*apiServer)
	return live
}

// taskPod is the pod of a TaskRun that asks for 64Mi.
func taskPod(task string, run int) *corev1.Pod {
	name := fmt.Sprintf("ci-%d-%s", run, task)
	pod := build.Pod("ci", name+"-pod").Annotate(v1alpha1.ProfileAnnotation, "steps").
		Container("step-main", build.Limit("64Mi"), build.Request("64Mi")).Obj()
	pod.Labels = map[string]string{
		"tekton.dev/pipeline": "build", "tekton.dev/pipelineTask": task, "tekton.dev/taskRun": name,
	}
	pod.Spec.Containers[0].Args = []string{"-entrypoint", "sh", "--", name} // differs in each run
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "tekton.dev/v1", Kind: "TaskRun", Name: name, UID: types.UID(name), Controller: new(true),
	}}
	pod.Status = corev1.PodStatus{}
	return pod
}

// admitted is the pod as the webhook lets it through.
func admitted(t *testing.T, h *Injector, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	r, err := readReview(bytes.Replace(reviewOf(raw), []byte(`"namespace":"shop"`), []byte(`"namespace":"ci"`), 1))
	if err != nil {
		t.Fatal(err)
	}
	a := h.Respond(t.Context(), &r)
	failed := func(w string) bool { return strings.Contains(w, "internal error") }
	if !a.Allowed || slices.ContainsFunc(a.Warnings, failed) {
		t.Fatalf("%+v", a)
	}
	patch, err := jsonpatch.DecodePatch(a.Patch)
	if len(a.Patch) == 0 {
		return pod
	}
	if err == nil {
		raw, err = patch.Apply(raw)
	}
	out := &corev1.Pod{}
	if err == nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// killed is a pod that the kernel killed for good.
func killed(pod *corev1.Pod, at time.Time) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.UID = types.UID(pod.Name)
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "step-main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{
			Reason: "OOMKilled", ExitCode: 137,
			StartedAt: metav1.NewTime(at.Add(-2 * time.Second)), FinishedAt: metav1.NewTime(at),
			ContainerID: "containerd://0",
		},
	}}}
	return pod
}

func limitOf(pod *corev1.Pod) int64 { return pod.Spec.Containers[0].Resources.Limits.Memory().Value() }

// TestTheRetryLives: a pod that is created within a second of the kill of its predecessor gets more, although no leader
// has recorded the kill.
func TestTheRetryLives(t *testing.T) {
	h, clock := replicaOfWebhook(t, v1alpha1.SizingOnCreate)
	dies := 0
	for run := range 5 { // one after the other; each needs 100Mi
		pod := admitted(t, h, taskPod("unit", run))
		if limitOf(pod) < 100<<20 {
			dies++
			h.Kills.Observe(t.Context(), killed(pod, clock.Now()))
		}
		clock.SetTime(clock.Now().Add(time.Second))
	}
	if dies != 1 {
		t.Errorf("%d of 5 pods died", dies)
	}
	if other := admitted(t, h, taskPod("lint", 1)); limitOf(other) != 64<<20 {
		t.Errorf("another task of the pipeline gets %d", limitOf(other))
	}
	for run := range 10 { // at the same time, after the first kill was seen
		if pod := admitted(t, h, taskPod("unit", 10+run)); limitOf(pod) < 100<<20 {
			t.Errorf("run %d is created with %d", run, limitOf(pod))
		}
	}
	edited := taskPod("unit", 30)
	edited.Spec.Containers[0].Image = "example.com/other:1"
	if pod := admitted(t, h, edited); limitOf(pod) < 64<<20 {
		t.Errorf("another image gets %d", limitOf(pod))
	}
	clock.SetTime(clock.Now().Add(pendingFor))
	if pod := admitted(t, h, taskPod("unit", 40)); limitOf(pod) != 64<<20 {
		t.Errorf("a kill that the recommendation does not contain after %s counts: %d", pendingFor, limitOf(pod))
	}
}

// TestAKillOnANodeThatIsShortOfMemory: the leader knows whether it was at the limit, the webhook does not. The node may
// report MemoryPressure after its pod's end.
func TestAKillOnANodeThatIsShortOfMemory(t *testing.T) {
	h, clock := replicaOfWebhook(t, v1alpha1.SizingOnCreate)
	died := clock.Now()
	short := map[string]time.Time{}
	h.Kills.NodePressureSince = func(node string) time.Time { return short[node] }
	pod := killed(admitted(t, h, taskPod("unit", 1)), died)
	pod.Spec.NodeName = "node-1"
	h.Kills.Observe(t.Context(), pod)
	for name, tc := range map[string]struct {
		node  string
		since time.Duration // the kill
		more  bool
	}{
		"the node reports it":                {"node-1", -time.Minute, false},
		"the node reports it ten seconds on": {"node-1", 10 * time.Second, false},
		"the node runs out a minute later":   {"node-1", time.Minute, true},
		"another node":                       {"node-2", -time.Minute, true},
	} {
		clear(short)
		short[tc.node] = died.Add(tc.since)
		if got := limitOf(admitted(t, h, taskPod("unit", 2))); got > 64<<20 != tc.more {
			t.Errorf("%s: the retry gets %d", name, got)
		}
	}
}

// TestAResizeThatMayNotBeEffective: a pod that was killed while it was raised in place counts with the limit that it
// was created with.
func TestAResizeThatMayNotBeEffective(t *testing.T) {
	h, clock := replicaOfWebhook(t, v1alpha1.SizingInPlace)
	pod := killed(admitted(t, h, taskPod("unit", 1)), clock.Now())
	h.Kills.Observe(t.Context(), pod)
	want := limitOf(admitted(t, h, taskPod("unit", 2)))

	h, clock = replicaOfWebhook(t, v1alpha1.SizingInPlace)
	pod = killed(admitted(t, h, taskPod("unit", 1)), clock.Now())
	pod.Generation = 2
	pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse("256Mi")
	h.Kills.Observe(t.Context(), pod)
	if got := limitOf(admitted(t, h, taskPod("unit", 2))); got != want {
		t.Errorf("the retry of a pod that was raised to 256Mi gets %d, want %d", got, want)
	}
}

// TestARaiseOfAPodOfWhichOnlyTheRequestWasSet: memfit's record has no limit then, and the owner's was the pod's.
func TestARaiseOfAPodOfWhichOnlyTheRequestWasSet(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	pod := killed(taskPod("unit", 1), now)
	pod.Generation = 2
	pod.Annotations[v1alpha1.InjectedAnnotation] = `{"v": 1, "containers": {"step-main": {
		"owner": {"limit": "64Mi", "request": "64Mi"}, "size": {"request": "45Mi", "wasRequest": "64Mi"}}}}`
	pod.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
	}
	if kills := killsIn(pod, now); len(kills) != 1 || kills[0].Limit != 64<<20 {
		t.Errorf("kills %+v, want one at 64Mi", kills)
	}
}

// TestPendingKillsChangeNothingElse: a profile that only recommends, a pause, the bounds of the profile and pods with a
// lasting owner are as without them.
func TestPendingKillsChangeNothingElse(t *testing.T) {
	h, clock := replicaOfWebhook(t, v1alpha1.SizingRecommend)
	h.Kills.Observe(t.Context(), killed(admitted(t, h, taskPod("unit", 1)), clock.Now()))
	if pod := admitted(t, h, taskPod("unit", 2)); limitOf(pod) != 64<<20 {
		t.Errorf("sizing.mode: Recommend gives %d", limitOf(pod))
	}

	h, clock = replicaOfWebhook(t, v1alpha1.SizingOnCreate)
	h.Kills.Observe(t.Context(), killed(admitted(t, h, taskPod("unit", 1)), clock.Now()))
	paused := taskPod("unit", 2)
	paused.Annotations[v1alpha1.PauseAnnotation] = "true"
	if pod := admitted(t, h, paused); limitOf(pod) != 64<<20 {
		t.Errorf("a paused pod gets %d", limitOf(pod))
	}
	owned := taskPod("unit", 3)
	owned.OwnerReferences[0].APIVersion, owned.OwnerReferences[0].Kind = "apps/v1", "StatefulSet"
	h.Kills.Observe(t.Context(), killed(owned, clock.Now()))
	if n := len(h.Kills.byIdentity); n != 1 {
		t.Errorf("%d workloads have pending kills", n)
	}
	for run := range 100 {
		h.Kills.Observe(t.Context(), killed(taskPod("unit", 100+run), clock.Now()))
	}
	for _, all := range h.Kills.byIdentity {
		if len(all) > maxPendingKills {
			t.Errorf("%d kills of one identity are remembered", len(all))
		}
	}
}

// TestRaisedKeepsTheOffer: a pending kill never lowers what the recommendation offers, and leaves other programs alone.
func TestRaisedKeepsTheOffer(t *testing.T) {
	h, clock := replicaOfWebhook(t, v1alpha1.SizingOnCreate)
	pod := killed(admitted(t, h, taskPod("unit", 1)), clock.Now())
	h.Kills.Observe(t.Context(), pod)
	resolved, err := h.Resolver.Resolve(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	pending := h.Kills.Of(resolved.Ref)
	for name, program := range map[string]string{
		"the same program": inject.ProgramOf(pod, "step-main", true).ID, "another": "x",
	} {
		offer := inject.Offer{Program: program}
		offer.Size.Limit = 1 << 30
		got := raised(resolved, map[string]inject.Offer{"step-main": offer}, pending, clock.Now())["step-main"]
		if got.Size.Limit != 1<<30 || got.Program != program {
			t.Errorf("%s: %+v", name, got)
		}
	}
	of := inject.ProgramOf(pod, "step-main", true)
	earlier := inject.Offer{Program: of.ID, Owner: of.Owner, Size: of.Owner}
	got := raised(resolved, map[string]inject.Offer{
		"step-main": {Program: "the newest", Others: []inject.Offer{earlier}},
	}, pending, clock.Now())["step-main"]
	if len(got.Others) == 0 || got.Others[0].Program != of.ID || got.Others[0].Size.Limit <= of.Owner.Limit {
		t.Errorf("the retry of a killed pod of an earlier program is offered %+v", got)
	}
}
