// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/build"
)

// TestOnlyADeathThatMemoryHelpsAgainstIsRolledBack: a limit was lowered from 512Mi to 128Mi weeks ago, and proven. Then
// something dies at 128Mi.
func TestOnlyADeathThatMemoryHelpsAgainstIsRolledBack(t *testing.T) {
	for name, test := range map[string]struct {
		runtime v1alpha1.RuntimeType
		env     []string
		use     memory.Bytes
		// reason and exit are of the main process, children is how many others were killed.
		reason   string
		exit     int32
		children int64
		short    bool   // its node reports MemoryPressure
		want     string // empty: nothing is rolled back
	}{
		"the main process, on a node without memory": {
			runtime: v1alpha1.RuntimeNative, use: 45 * memory.MiB, reason: "OOMKilled", exit: 137, short: true,
		},
		"the main process": {
			runtime: v1alpha1.RuntimeNative, use: 120 * memory.MiB, reason: "OOMKilled", exit: 137,
			want: "was OOM-killed at that limit",
		},
		"a tool of a debug session": {runtime: v1alpha1.RuntimeNative, use: 45 * memory.MiB, children: 1},
		"two child processes": {
			runtime: v1alpha1.RuntimeNative, use: 45 * memory.MiB, children: 2,
			want: "lost a child process to the OOM killer at that limit",
		},
		"an abort of an unknown runtime": {
			runtime: v1alpha1.RuntimeAuto, use: 20 * memory.MiB, reason: "Error", exit: 134,
		},
		"a heap that its owner caps": {
			runtime: v1alpha1.RuntimeJVM, env: []string{"JAVA_TOOL_OPTIONS", "-Xmx64m"}, use: 90 * memory.MiB, reason: "Error",
			exit: 3,
		},
		"a heap that may be a share of the limit": {
			runtime: v1alpha1.RuntimeJVM, use: 90 * memory.MiB, reason: "Error", exit: 3, want: "ran out of heap at that limit",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := build.Pod("shop", "web-1").On("node-1").Container(
				"app", build.Limit("128Mi"), build.Request("64Mi"), build.Env(test.env...), build.Started(began),
			)
			s := &Snapshot{
				Owner: memory.Workload{
					Ref: memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, UID: "web",
				},
				Profile: governing(build.Profile("shop", "web", test.runtime, build.Sizing(v1alpha1.SizingInPlace))),
			}
			st, now := NewState(), began.Add(14*24*time.Hour)
			if test.short {
				s.Facts.NodePressureSince = map[string]time.Time{"node-1": now}
			}
			st.rollout.Lowerings = []rollout.Lowering{
				{Container: "app", From: sizeMi(64, 512), To: sizeMi(64, 128), At: began, Proven: true},
			}
			app := memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "web-1", Container: "app"}
			step := func() (e Effects) {
				pod := w.Obj()
				pod.UID, pod.CreationTimestamp = app.UID, metav1.NewTime(began)
				s.Pods, s.Template, s.Events.Observations = []*corev1.Pod{pod}, pod, oom.Observe(pod)
				s.Governed = s.Pods
				st, e = Step(st, s, now)
				return e
			}
			s.Events.Samples = []memory.Sample{{
				Container: app, Time: now, Started: began, RSS: test.use, HasRSS: true, Exact: true, WorkingSet: test.use,
				Usage: test.use,
			}}
			step()
			now, s.Events.Samples = now.Add(time.Minute), nil
			if test.exit != 0 {
				w.Container("app", build.Died(now, test.reason, test.exit))
			}
			s.Events.Counters = []memory.KillCounter{{Container: app, ContainerID: "app-0", Count: test.children, Time: now}}
			e := step()
			if len(e.Kills) == 0 {
				t.Fatal("no kill was counted")
			}
			size := e.Status.Containers[0].Recommended
			if test.short && size != nil && size.Limit.Cmp(resource.MustParse("128Mi")) > 0 {
				t.Errorf("for a kill by its node, a limit of %s is recommended", size.Limit)
			}
			i := slices.IndexFunc(e.Findings, func(f rollout.Finding) bool { return f.Kind == rollout.Reverted })
			switch {
			case test.want == "" && i >= 0:
				t.Errorf("rolled back: %s", e.Findings[i].Message)
			case test.want != "" && (i < 0 || !strings.Contains(e.Findings[i].Message, test.want)):
				t.Errorf("findings %v, want one that says %q", e.Findings, test.want)
			}
		})
	}
}

// Seen on a real node: memfit lowered a limit from 256Mi to 41Mi, and the container was killed a second later, before
// its agent had read the new limit, so that the agent reported a kill at 256Mi. memfit was killed as well.
func TestALimitThatKillsWithinASecondIsRolledBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// reports is the step with the agent's report, and killed the one before which memfit is killed, without having
		// written its last Events; 0: it is not. Step 1 sees the kill.
		reports, killed int
	}{
		"the agent's report comes with the kill":             {reports: 1},
		"it comes later":                                     {reports: 2},
		"memfit is killed before it sees the kill":           {reports: 1, killed: 1},
		"memfit is killed before the report":                 {reports: 2, killed: 2},
		"memfit is killed after both, and before its Events": {reports: 1, killed: 2},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDay(t, v1alpha1.SizingInPlace, sizeMi(256, 256), 33*memory.MiB, 3)
			d.run(23*time.Hour, 2*time.Minute)
			for d.lowered() == 0 {
				d.run(10*time.Second, 10*time.Second)
			}
			d.step() // it is effective
			first := d.pods[slices.IndexFunc(d.pods, func(p *dayPod) bool { return p.size.Limit < 256*memory.MiB })]
			lowered := first.size.Limit
			told := map[string]bool{}
			for step := range 4 {
				if step > 0 && step == test.killed {
					d.restart()
					clear(told)
				}
				d.now = d.now.Add(time.Second)
				if step == 1 {
					first.need = 200 * memory.MiB
				}
				d.kubelet()
				first.need = 0
				if step == test.reports {
					saw := sawKill(first.last.FinishedAt.Time, "MainProcess")
					saw.Evidence, saw.ContainerLimit, saw.PodLimit = "PodStatus", quantity("256Mi"), quantity("256Mi")
					d.agents = map[types.UID]*v1alpha1.MemorySnapshot{first.uid: {Status: v1alpha1.MemorySnapshotStatus{
						NodeName: "node-1", Containers: []v1alpha1.ContainerSnapshot{{Container: "app", LastKill: saw}},
					}}}
				}
				d.step()
				for _, e := range d.events {
					if e.Reason == v1alpha1.EventReverted {
						told[e.At.String()+e.ID] = true
					}
				}
			}
			d.run(10*time.Minute, 10*time.Second)
			if kills := d.state.ledger.Kills("app"); len(kills) != 1 || kills[0].Limit != lowered {
				d.fail("kills %+v, want one at %s", kills, lowered)
			}
			if len(told) != 1 {
				d.fail("%d rollbacks were reported, want 1: %v", len(told), told)
			}
			if slices.ContainsFunc(d.limits(), func(l memory.Bytes) bool { return l != 256*memory.MiB }) {
				d.fail("limits %v, want what the owner asks for", d.limits())
			}
		})
	}
}

// leaves sets another mode than InPlace, in which pods were lowered.
func (d *day) leaves(mode v1alpha1.SizingMode) {
	d.t.Helper()
	if d.lowered() != len(d.pods) {
		d.fail("nothing was lowered: %v", d.limits())
	}
	d.named.Spec.Sizing.Mode = mode
	profile.Inherit([]*profile.Profile{d.named})
}

var keeping = []v1alpha1.SizingMode{v1alpha1.SizingOnCreate, v1alpha1.SizingRecommend, v1alpha1.SizingDisabled}

// TestWhoLoweredGivesBack: leaving InPlace begins with returning what was lowered in place. The pods need it later.
func TestWhoLoweredGivesBack(t *testing.T) {
	t.Parallel()
	for _, mode := range keeping {
		d := newDay(t, v1alpha1.SizingInPlace, sizeMi(256, 1024), 60*memory.MiB, 3)
		d.run(28*time.Hour, 2*time.Minute)
		lowered := d.limits()[0]
		d.leaves(mode)
		d.run(time.Minute, 10*time.Second)
		if d.lowered() != 0 {
			d.fail("%s: pods still have %v", mode, d.limits())
		}
		d.run(time.Hour, time.Minute)
		d.restart()
		if d.deploy("release"); mode == v1alpha1.SizingOnCreate && d.limits()[2] > lowered.Percent(120) {
			d.fail("%s: what was proven for new pods is lost: %v", mode, d.limits())
		} else if mode != v1alpha1.SizingOnCreate && d.lowered() > 0 {
			d.fail("%s: new pods have %v", mode, d.limits())
		}
	}
}

// TestALowerLimitThatDoesHarmIsGivenBackInEveryMode: the pods were created with it while the mode was InPlace.
func TestALowerLimitThatDoesHarmIsGivenBackInEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range keeping {
		d := newDay(t, v1alpha1.SizingInPlace, sizeMi(256, 1024), 60*memory.MiB, 3)
		d.run(28*time.Hour, 2*time.Minute)
		d.deploy("restart")
		d.run(time.Hour, 2*time.Minute)
		d.leaves(mode)
		d.run(time.Hour, 2*time.Minute)
		if d.lowered() != 3 {
			d.fail("%s: without harm running pods are changed: %v", mode, d.limits())
		}
		d.pause = "memfit.dev/pause on Namespace shop"
		d.need[d.image] = 600 * memory.MiB
		d.run(10*time.Minute, 10*time.Second)
		if d.lowered() > 0 || d.kills > 3 {
			d.fail("%s: %d kills, and pods have %v", mode, d.kills, d.limits())
		}
	}
}

// created is a workload whose pods got a lower limit at their creation, the first of them before the others. memfit has
// changed no running pod. Later they need more.
func created(t *testing.T, owner memory.Size) *day {
	t.Helper()
	d := newDay(t, v1alpha1.SizingOnCreate, owner, 90*memory.MiB, 3)
	d.run(26*time.Hour+10*time.Minute, 10*time.Minute)
	d.deploy("one of them first")
	d.run(time.Hour, 5*time.Minute)
	d.deploy("then all")
	if slices.Max(d.limits()) > 200*memory.MiB || slices.Min(d.limits()) == 0 {
		d.fail("not all pods have a lower limit: %v", d.limits())
	}
	return d
}

// TestWhoLowersAtCreationGivesBack: a container that is killed again and again keeps its pod, so that new pods alone
// would never come. The mode is the one that lowered, or that of an owner who turns back.
func TestWhoLowersAtCreationGivesBack(t *testing.T) {
	for _, mode := range keeping {
		d := created(t, sizeMi(512, 1024))
		d.named.Spec.Sizing.Mode = mode
		profile.Inherit([]*profile.Profile{d.named})
		d.pause = "memfit.dev/pause on Namespace shop"
		d.burst, d.backoff = 400*memory.MiB, time.Minute
		d.run(time.Hour, 10*time.Second)
		if d.kills > 3 || d.lowered() > 0 {
			d.fail("%s: %d kills of three pods, which have %v", mode, d.kills, d.limits())
		}
		if log := strings.Join(d.log, "\n"); !strings.Contains(log, "is rolled back from every pod that has it, to 1Gi") {
			d.fail("%s: nobody is told what became of the lower limit", mode)
		}
	}
}

// TestAFirstLimitThatDoesHarmIsRaised: its owner set none, and no resize gives that back.
func TestAFirstLimitThatDoesHarmIsRaised(t *testing.T) {
	d := created(t, sizeMi(512, 0))
	d.reports, d.burst, d.backoff = true, 200*memory.MiB, time.Minute
	d.run(time.Hour, 10*time.Second)
	if d.kills > 6 || slices.Min(d.limits()) < 290*memory.MiB {
		d.fail("%d kills of three pods, which have %v", d.kills, d.limits())
	}
}

// TestWithoutTheRightToGiveBackTheCommandIsNamed: only new pods have the old limit then.
func TestWithoutTheRightToGiveBackTheCommandIsNamed(t *testing.T) {
	d := created(t, sizeMi(512, 1024))
	d.noRight, d.burst, d.backoff = true, 400*memory.MiB, time.Minute
	d.run(30*time.Minute, 10*time.Second)
	c := meta.FindStatusCondition(d.shown.Conditions, v1alpha1.ConditionApplied)
	const command = "kubectl -n shop rollout restart deployment/web"
	if c.Reason != v1alpha1.ReasonRefused || !strings.Contains(c.Message, "config/rbac/resize-pods grants the right") ||
		!strings.Contains(c.Message, command) {
		d.fail("Applied is %s: %s", c.Reason, c.Message)
	}
	if !slices.ContainsFunc(d.log, func(line string) bool {
		return strings.Contains(line, "Mi to 1Gi") && strings.Contains(line, command)
	}) {
		d.fail("no Event names the command")
	}
	d.deploy("kubectl rollout restart")
	before := d.kills
	d.run(10*time.Minute, 10*time.Second)
	c = meta.FindStatusCondition(d.shown.Conditions, v1alpha1.ConditionApplied)
	if d.kills > before || c.Reason != v1alpha1.ReasonUpToDate {
		d.fail("%d kills after the restart; Applied is %s: %s", d.kills-before, c.Reason, c.Message)
	}
}

// TestARollbackAfterTheModeWasLeftReachesRunningPods: the kill comes in the moment in which the mode changes.
func TestARollbackAfterTheModeWasLeftReachesRunningPods(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(256, 512), 60*memory.MiB, 2)
	d.run(27*time.Hour, 2*time.Minute)
	d.leaves(v1alpha1.SizingRecommend)
	d.burst, d.now = 300*memory.MiB, d.now.Add(time.Minute)
	d.kubelet()
	if d.step(); d.lowered() > 0 {
		d.fail("pods have %v", d.limits())
	}
	if !strings.Contains(strings.Join(d.log, "\n"), "is rolled back from every pod that has it, to 512Mi") {
		d.fail("nobody is told what became of the lower limit")
	}
}

// TestWithRecommendWhatIsNotEffectiveIsTakenBack: the mode was InPlace when it was asked for, and the node is full.
func TestWithRecommendWhatIsNotEffectiveIsTakenBack(t *testing.T) {
	pod := build.Pod("shop", "web-1").On("node-1").Container(
		"app", build.Limit("512Mi"), build.Request("512Mi"), build.Started(began),
	).Obj()
	pod.UID, pod.CreationTimestamp = "web-1", metav1.NewTime(began)
	asked := &pod.Spec.Containers[0].Resources
	asked.Requests[corev1.ResourceMemory] = resource.MustParse("1Gi")
	asked.Limits[corev1.ResourceMemory] = resource.MustParse("1Gi")
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred,
	}}
	s := &Snapshot{
		Owner: memory.Workload{
			Ref: memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, UID: "web",
		},
		Profile: governing(build.Profile("shop", "web", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingRecommend))),
		Pods:    []*corev1.Pod{pod}, Template: pod, Governed: []*corev1.Pod{pod},
	}
	st, from := NewState(), map[string]memory.Size{"app": sizeMi(512, 512)}
	st.rollout.Steps = []rollout.Step{{
		Pod: "web-1", UID: pod.UID, Phase: rollout.Resizing, From: from,
		To: map[string]memory.Size{"app": sizeMi(1024, 1024)},
	}}
	_, e := Step(st, s, began.Add(time.Hour))
	if len(e.Actions) != 1 || !e.Actions[0].Undo || !maps.Equal(e.Actions[0].Sizes, from) {
		t.Errorf("actions are %+v", e.Actions)
	}
}

// TestAKillRestoresWhatWasEnough: pods were lowered twice, and need more than the first of these lowerings gave them. A
// kill disproves the judgement, not its last step.
func TestAKillRestoresWhatWasEnough(t *testing.T) {
	t.Parallel()
	for _, mode := range []v1alpha1.SizingMode{v1alpha1.SizingInPlace, v1alpha1.SizingInPlaceOrEvict} {
		for _, reports := range []bool{true, false} {
			d := newDay(t, mode, sizeMi(1024, 1024), 300*memory.MiB, 3)
			d.reports = reports
			d.run(26*time.Hour, 10*time.Minute)
			first := d.limits()[0]
			d.run(8*24*time.Hour, time.Hour)
			if d.lowered() != 3 || d.limits()[0] == first || len(d.state.rollout.Lowerings) < 2 {
				d.fail("pods were not lowered twice: %v and %v", first, d.limits())
			}
			d.burst, d.backoff = 400*memory.MiB, 5*time.Minute
			d.run(time.Hour, 30*time.Second)
			if d.kills > 3 || d.lowered() > 0 {
				d.fail("%s: %d kills of three pods, which have %v", mode, d.kills, d.limits())
			}
		}
	}
}
