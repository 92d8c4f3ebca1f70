// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/podplan"
)

// day is a Deployment on ordinary days: releases with and without other memory, restarts, scaling, drains, pauses and
// lost nodes, beside a memfit that is restarted now and then. The API server, the webhook and the kubelet are modeled:
// a resize is in force at once, and a container that needs more than its limit is killed and started again.
type day struct {
	t     *testing.T
	now   time.Time
	of    memory.WorkloadRef
	named *profile.Profile
	// image, owner and replicas are what the owner's manifest says.
	image    string
	owner    memory.Size
	replicas int
	// need is the steady demand of each image.
	need map[string]memory.Bytes
	// burst is added to the demand of all pods, start to that of processes in their first two minutes.
	burst, start memory.Bytes
	pause        string
	// series is how many the owner's rollbackQuery has; nil: there is no query.
	series *int
	// guaranteed: the owner sets CPU as well, and requests equal limits.
	guaranteed bool
	// elsewhere is a pod that follows another profile.
	elsewhere types.UID
	// live is the live heap of each pod, which aborts at a cap below it: a number in its environment; 0: no heap.
	live memory.Bytes
	// backoff is how long a container stays down after it aborted; reports: the kubelet reports the pod's cgroup.
	backoff time.Duration
	reports bool
	// agents are what the agents of nodes saw, by pod. events are those of the last step.
	agents map[types.UID]*v1alpha1.MemorySnapshot
	events []Event
	// ahead is how far memfit's clock is ahead of all others.
	ahead time.Duration
	// noRight: memfit may not resize pods.
	noRight bool

	pods    []*dayPod
	created int
	state   *State
	stored  v1alpha1.MemoryCheckpointStatus
	earlier *State
	idle    bool // more time passes before anything but memfit acts: nothing need be stored
	shown   v1alpha1.MemoryRecommendationStatus
	// used are the permits for canaries that the webhooks used, by the replica of memfit.
	used map[string]int64
	log  []string
	// room is what nodes have for requests, 0: enough; mayNot is why the API server refuses a resize, or an eviction.
	room   memory.Bytes
	mayNot func(rollout.Action) rollout.Outcome
	// lacks is what else the scheduler says of a pod without a node; empty: no node has memory.
	lacks string

	// templates are the containers of pods, which replicas share as they do in the informer's cache.
	templates map[template][]corev1.Container
	// peaks are the highest demand of a program in the last 24 hours that memfit was shown, by image.
	peaks map[string][]seenDemand
	kills int
}

type seenDemand struct {
	at     time.Time
	demand memory.Bytes
}

// template is all that distinguishes the containers of two pods.
type template struct {
	image string
	size  memory.Size
	env   string
}

type dayPod struct {
	of          *day
	name, image string
	uid         types.UID
	created     time.Time
	started     time.Time
	owner, size memory.Size
	// need is what it needs beyond its image.
	need        memory.Bytes
	annotations map[string]string
	env         []corev1.EnvVar
	restarts    int32
	last        *corev1.ContainerStateTerminated
	downUntil   time.Time
	// waits: no node has room for its request. unread: its usage cannot be read.
	waits, unread bool
	resized       bool
	// resizedBy is another writer than memfit that resized the pod last.
	resizedBy string
	resizedAt metav1.Time
}

func newDay(t *testing.T, mode v1alpha1.SizingMode, owner memory.Size, need memory.Bytes, replicas int) *day {
	t.Helper()
	p := build.Profile("shop", "web", v1alpha1.RuntimeNative, build.Sizing(mode))
	d := &day{
		t: t, now: began, of: memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		image: "web:1", owner: owner, replicas: replicas, state: NewState(),
		need: map[string]memory.Bytes{"web:1": need}, peaks: map[string][]seenDemand{},
		templates: map[template][]corev1.Container{}, used: map[string]int64{},
		named: governing(p),
	}
	d.scale()
	return d
}

func (d *day) note(format string, args ...any) {
	d.log = append(d.log, d.now.Format("02 15:04:05 ")+fmt.Sprintf(format, args...))
}

// scale creates pods until there are as many as there are to be.
func (d *day) scale() {
	for len(d.pods) < d.replicas {
		d.create()
	}
	d.pods = d.pods[:d.replicas]
}

// create lets the webhook admit a pod from what memfit has published.
func (d *day) create() {
	d.created++
	name := fmt.Sprintf("web-%d", d.created)
	p := &dayPod{
		of: d, name: name, uid: types.UID(name), image: d.image, created: d.now, started: d.now, owner: d.owner,
		size: d.owner,
	}
	pod := p.shown()
	pod.Status = corev1.PodStatus{}
	in := inject.Input{Pod: pod, Profile: d.named, Sizes: inject.OffersIn(d.shown.Containers)}
	if refused := d.shown.RefusedRequest; refused != nil {
		in.Facts = &constraints.Facts{Refused: memory.FromQuantity(*refused)}
	}
	replica := fmt.Sprintf("memfit-%d", d.created%2) // whichever of two is asked
	permit := d.shown.Canary
	if permit != nil && (permit.Replica == "" || permit.Replica == replica) && d.used[replica] < permit.Number {
		canary := in
		canary.Sizes = inject.CanariesIn(d.shown.Containers)
		if m := inject.MakePlan(canary).Edit("app").Memory; m != nil {
			in, d.used[replica] = canary, permit.Number
		}
	}
	plan := inject.MakePlan(in)
	if m := plan.Edit("app").Memory; m != nil {
		p.size = *m
	}
	podplan.Apply(pod, plan)
	p.annotations, p.env = pod.Annotations, pod.Spec.Containers[0].Env
	d.note("created %s of %s with %s", name, p.image, p.size)
	p.waits = !d.fits(p.size.Request)
	d.pods = append(d.pods, p)
}

// fits reports whether nodes have room for a request more.
func (d *day) fits(more memory.Bytes) bool {
	for _, p := range d.pods {
		if !p.waits {
			more = more.Plus(p.size.Request)
		}
	}
	return d.room == 0 || more <= d.room
}

// deploy replaces every pod by one of the manifest's, as a rollout does.
func (d *day) deploy(what string) {
	d.note("%s: %s, %s", what, d.image, d.owner)
	old := d.pods
	d.pods = nil
	for range old {
		d.create()
		d.step()
	}
	d.scale()
}

func (d *day) demand(p *dayPod) memory.Bytes {
	use := d.need[p.image] + p.need + d.burst + min(d.live, p.heapCap())
	if d.now.Sub(p.started) < 2*time.Minute {
		use += d.start
	}
	return use
}

// heapCap is the largest heap of Node.js that the environment allows.
func (p *dayPod) heapCap() memory.Bytes {
	for _, e := range p.env {
		for word := range strings.FieldsSeq(e.Value) {
			var mib memory.Bytes
			if n, _ := fmt.Sscanf(word, "--max-old-space-size=%d", &mib); n == 1 {
				return mib * memory.MiB
			}
		}
	}
	return memory.Max
}

func (p *dayPod) holds(demand memory.Bytes) bool { return p.size.Limit == 0 || demand <= p.size.Limit }

func (p *dayPod) shown() *corev1.Pod {
	amount := func(s memory.Size) corev1.ResourceRequirements {
		list := func(b memory.Bytes) corev1.ResourceList {
			return corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(int64(b), resource.BinarySI)}
		}
		r := corev1.ResourceRequirements{Limits: list(s.Limit), Requests: list(s.Request)}
		if p.of.guaranteed {
			r.Limits[corev1.ResourceCPU], r.Requests[corev1.ResourceCPU] = resource.MustParse("1"), resource.MustParse("1")
		}
		return r
	}
	key := template{p.image, p.size, fmt.Sprint(p.env)}
	containers, known := p.of.templates[key]
	if !known {
		containers = []corev1.Container{{Name: "app", Image: p.image, Resources: amount(p.size), Env: p.env}}
		p.of.templates[key] = containers
	}
	has := containers[0].Resources
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: p.name, UID: p.uid, CreationTimestamp: metav1.NewTime(p.created), Generation: 1,
			Annotations: p.annotations,
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1", Containers: containers,
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", RestartCount: p.restarts, ContainerID: fmt.Sprintf("containerd://%s-%d", p.uid, p.restarts),
				Resources: &has, Ready: true,
				State: corev1.ContainerState{
					Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(p.started)},
				},
				LastTerminationState: corev1.ContainerState{Terminated: p.last},
			}},
		},
	}
	if p.of.guaranteed && p.size.Request == p.size.Limit {
		pod.Status.QOSClass = corev1.PodQOSGuaranteed
	}
	if p.waits {
		pod.Spec.NodeName, pod.Status.Phase, pod.Status.ContainerStatuses = "", corev1.PodPending, nil
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: "0/3 nodes are available: 1 Too many pods, " + cmp.Or(p.of.lacks, "2 Insufficient memory."),
		}}
	}
	if p.of.reports {
		pod.Status.Resources = has.DeepCopy()
	}
	if p.of.now.Before(p.downUntil) {
		status := &pod.Status.ContainerStatuses[0]
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		status.Ready, pod.Status.Conditions[0].Status = false, corev1.ConditionFalse
	}
	if p.resized {
		pod.Generation = 2
		pod.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: cmp.Or(p.resizedBy, FieldManager), Subresource: "resize", Time: &p.resizedAt},
		}
	}
	return pod
}

// run lets time pass: containers that need more than they may have are killed, samples are taken, and memfit steps.
func (d *day) run(length, tick time.Duration) {
	d.t.Helper()
	for end := d.now.Add(length); d.now.Before(end); {
		d.now = d.now.Add(tick)
		d.idle = d.now.Before(end)
		d.kubelet()
		d.step()
		d.check()
	}
}

// kubelet kills and restarts what does not fit.
func (d *day) kubelet() {
	for _, p := range d.pods {
		if p.waits {
			if p.waits = !d.fits(p.size.Request); p.waits {
				continue
			}
			d.note("scheduled %s", p.name)
			p.started = d.now
		}
		aborts := d.live > 0 && d.live > p.heapCap()
		if p.holds(d.demand(p)) && !aborts || d.now.Before(p.downUntil) {
			continue
		}
		p.last = &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "OOMKilled", StartedAt: metav1.NewTime(p.started), FinishedAt: metav1.NewTime(d.now),
			ContainerID: fmt.Sprintf("containerd://%s-%d", p.uid, p.restarts),
		}
		if aborts {
			p.last.ExitCode, p.last.Reason = 134, "Error"
		}
		p.restarts++
		p.started, p.downUntil = d.now, d.now.Add(d.backoff)
		d.kills++
		d.note("killed %s of %s at %s", p.name, p.image, p.size.Limit)
	}
}

func (d *day) step() {
	s := &Snapshot{
		Owner:   memory.Workload{Ref: d.of, UID: "web"},
		Profile: d.named, paused: d.pause, Replica: "memfit-0", Earlier: d.earlier, Snapshots: d.agents,
	}
	for _, p := range d.pods {
		pod := p.shown()
		s.Pods = append(s.Pods, pod)
		s.Events.Observations = append(s.Events.Observations, oom.Observe(pod)...)
		if use := d.demand(p); p.holds(use) && !p.waits && !p.unread {
			s.Events.Samples = append(s.Events.Samples, memory.Sample{
				Container: memory.ContainerRef{Namespace: "shop", Pod: p.name, UID: p.uid, Container: "app"},
				Time:      d.now, Started: p.started, RSS: use, HasRSS: true, Exact: true, WorkingSet: use, Usage: use,
			})
			d.peaks[p.image] = append(d.peaks[p.image], seenDemand{d.now, use})
		}
	}
	if d.series != nil {
		s.QueryResult = &rollout.QueryResult{At: d.now, Series: *d.series}
	}
	slices.SortFunc(s.Pods, NewestFirst)
	s.Governed = slices.DeleteFunc(slices.Clone(s.Pods), func(p *corev1.Pod) bool { return p.UID == d.elsewhere })
	if len(s.Pods) > 0 {
		s.Template = s.Pods[0]
	} else {
		_, s.Template = d.state.Last()
	}
	if s.Template == nil {
		return
	}
	if d.ahead > 10*time.Minute {
		s.Events.Samples = nil // the collector takes none (usage.MostBehind)
	}
	next, effects := Step(d.state, s, d.now.Add(d.ahead))
	d.state, d.events = next, effects.Events
	if !d.idle {
		d.save()
	}
	for _, f := range effects.Findings {
		d.note("%s %s", f.Kind, f.Message)
	}
	d.shown = effects.Status
	for _, a := range effects.Actions {
		i := slices.IndexFunc(d.pods, func(p *dayPod) bool { return p.uid == a.UID })
		var refused rollout.Outcome
		if d.mayNot != nil {
			refused = d.mayNot(a)
		}
		switch {
		case i < 0:
		case refused.Kind != rollout.OutcomeUnknown:
			d.note("refused %s: %s: %s", a.Pod, a.Why, refused.Why)
			d.state.Rollout().Note(a, refused, d.now)
		case a.Evict:
			d.note("evicted %s: %s", a.Pod, a.Why)
			d.pods = slices.Delete(d.pods, i, i+1)
			d.create()
		case d.noRight:
			forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, a.Pod, errors.New("no right"))
			o, _ := OutcomeOf(a, forbidden, true)
			o.Why += WithoutResizeHint(s, s.Pod(a.UID), a)
			d.state.Rollout().Note(a, o, d.now)
			d.note("%s", RefusedPod(s.Owner, s.Pod(a.UID), a, o.Why).Note)
		default:
			d.note("resized %s: %s", a.Pod, a.Why)
			p := d.pods[i]
			to := a.Sizes["app"]
			if !p.waits && !d.fits(to.Request.Minus(p.size.Request)) {
				continue // a node without room for it
			}
			if to.Limit > 0 {
				p.size.Limit = to.Limit
			}
			if to.Request > 0 {
				p.size.Request = to.Request
			}
			p.resized = true
		}
	}
}

func (d *day) save() {
	status, err := d.state.Pack()
	if err == nil {
		err = d.state.PackHistories(&status)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.stored = status
}

// restart ends memfit and starts another one, which knows what was written.
func (d *day) restart() {
	d.note("memfit is restarted")
	d.state = NewState()
	if lost, err := d.state.Unpack(&v1alpha1.MemoryCheckpoint{Status: d.stored}); err != nil || len(lost) > 0 {
		d.t.Fatal(err, lost)
	}
}

// check holds what must be true at any time: no pod has less than its owner asks for, but for one that is the first
// with a lower limit, and for those that follow it after it was watched.
func (d *day) check() {
	d.t.Helper()
	var canaries []string
	for _, p := range d.pods {
		if p.size.Limit >= p.owner.Limit {
			continue
		}
		program := d.state.evidenceOf("app", inject.ProgramOf(p.shown(), "app", false).ID)
		proven := memory.Size{}
		if program != nil {
			if p.owner != program.Owner {
				continue // it was lowered before its owner set other numbers, which hold for newer pods
			}
			proven = d.state.rollout.Proven("app", program.Program)
			key := rollout.Key{Container: "app", Program: program.Program}
			if _, reverted := d.state.rollout.ActiveRevert(key, d.now); reverted {
				continue // OnCreate does not change running pods, and in place it is being given back
			}
		}
		if proven.Limit == 0 || p.size.Limit < proven.Limit {
			canaries = append(canaries, fmt.Sprintf("%s (%s)", p.name, p.size.Limit))
		}
	}
	if len(canaries) > 1 {
		d.fail("%d pods run at a time under a lower limit that no pod has proven: %v", len(canaries), canaries)
	}
}

func (d *day) fail(format string, args ...any) {
	d.t.Helper()
	for _, line := range d.log[max(0, len(d.log)-40):] {
		d.t.Log(line)
	}
	d.t.Fatalf(format, args...)
}

// limits are those of all pods.
func (d *day) limits() (all []memory.Bytes) {
	for _, p := range d.pods {
		all = append(all, p.size.Limit)
	}
	return all
}

// lowered is how many pods have less than their owner asks for.
func (d *day) lowered() (n int) {
	for _, p := range d.pods {
		if p.size.Limit < d.owner.Limit {
			n++
		}
	}
	return n
}

func sizeMi(request, limit memory.Bytes) memory.Size {
	return memory.Size{Request: request * memory.MiB, Limit: limit * memory.MiB}
}

// TestAReleaseThatRaisesItsLimitKeepsIt: v1 was killed once and raised. v2 asks for more in the same commit in which it
// needs more; evidence of v1 says nothing about it.
func TestAReleaseThatRaisesItsLimitKeepsIt(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(16, 32), 48*memory.MiB, 2)
	d.run(10*time.Minute, 10*time.Second)
	if least := slices.Min(d.limits()); least <= 48*memory.MiB {
		d.fail("v1 was not raised: %v", d.limits())
	}
	d.image, d.owner, d.need["web:2"] = "web:2", sizeMi(640, 1024), 608*memory.MiB
	before := d.kills
	d.deploy("release")
	for _, p := range d.pods {
		if p.size.Limit < d.owner.Limit || p.size.Request < d.owner.Request {
			d.fail("%s was created with %s, its owner asks for %s", p.name, p.size, d.owner)
		}
	}
	d.run(30*time.Minute, 10*time.Second)
	if d.kills > before {
		d.fail("%d kills of v2, which none would have had without memfit", d.kills-before)
	}
}

// TestALargerLimitSetAtNightIsKept: the same program, whose owner gives it more memory.
func TestALargerLimitSetAtNightIsKept(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(256, 512), 60*memory.MiB, 3)
	d.run(26*time.Hour, 2*time.Minute)
	d.owner = sizeMi(640, 1024)
	d.deploy("a person sets a larger limit")
	d.run(12*time.Hour, 2*time.Minute)
	d.replicas++ // new pods of the same template are no new edit
	d.scale()
	d.run(11*time.Hour, 2*time.Minute)
	for _, p := range d.pods {
		if p.size.Limit < d.owner.Limit || p.size.Request < d.owner.Request {
			d.fail("%s has %s a day after its owner set %s", p.name, p.size, d.owner)
		}
	}
	d.run(5*time.Hour, 2*time.Minute)
	if least := slices.Max(d.limits()); least >= d.owner.Limit {
		d.fail("after a day of evidence nothing is lowered: %v", d.limits())
	}
}

// TestAnEditOfTheOwnerNeedsACanaryOfItsOwn: what the program was watched with under the previous numbers proves
// nothing, and neither do pods that still run with them.
func TestAnEditOfTheOwnerNeedsACanaryOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, together := range map[string]time.Duration{"all at once": 0, "two hours beside old pods": 2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			d := newDay(t, v1alpha1.SizingInPlace, sizeMi(256, 512), 60*memory.MiB, 3)
			d.run(27*time.Hour, 2*time.Minute)
			if slices.Max(d.limits()) >= d.owner.Limit {
				d.fail("nothing was lowered before the edit: %v", d.limits())
			}
			d.owner = sizeMi(640, 1024)
			old := d.pods
			d.pods = slices.Clone(old[1:])
			d.create()
			d.run(together, 2*time.Minute)
			d.deploy("a larger limit")
			d.need[d.image] += 20 * memory.MiB // so that what is recommended is not below what was proven before the edit
			lowered := func() (n int) {
				for _, p := range d.pods {
					if p.size.Limit < d.owner.Limit {
						n++
					}
				}
				return n
			}
			for range 26 * 30 {
				if d.run(2*time.Minute, 2*time.Minute); lowered() > 0 {
					break
				}
			}
			d.replicas++
			d.scale()
			d.run(8*time.Minute, 30*time.Second)
			if n := lowered(); n != 1 {
				d.fail("%d of 4 pods have a lower limit while the first one is watched: %v", n, d.limits())
			}
			d.run(time.Hour, time.Minute)
			if n := lowered(); n != 4 {
				d.fail("an hour after it was watched %d of 4 pods have a lower limit: %v", n, d.limits())
			}
		})
	}
}

// TestARestartDoesNotBypassTheCanary: a lower limit reaches new pods, too, after one pod was watched with it.
func TestARestartDoesNotBypassTheCanary(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingOnCreate, sizeMi(256, 512), 60*memory.MiB, 3)
	d.run(26*time.Hour, 2*time.Minute)
	d.named.Spec.Sizing.Mode = v1alpha1.SizingInPlace
	profile.Inherit([]*profile.Profile{d.named})
	d.step()
	d.deploy("rollout restart")
	for _, p := range d.pods {
		if p.size.Limit < d.owner.Limit {
			d.fail("%s was created with %s although no pod was watched with it", p.name, p.size)
		}
	}
	d.run(time.Hour, 30*time.Second)
	if got := d.limits(); slices.Max(got) >= d.owner.Limit {
		d.fail("nothing was lowered in an hour: %v", got)
	}
	lowered := slices.Max(d.limits())
	d.burst = lowered // all replicas at once
	d.run(time.Minute, 10*time.Second)
	d.burst = 0
	d.run(5*time.Minute, 10*time.Second)
	if got := d.limits(); slices.Min(got) < d.owner.Limit {
		d.fail("a kill at a limit that memfit lowered did not restore the old one for all: %v", got)
	}
}

// TestALimitSetInADebugSessionStaysThatPods: somebody raises one pod by hand to look into it. Pods that are created
// then and later have what memfit and the owner say.
func TestALimitSetInADebugSessionStaysThatPods(t *testing.T) {
	t.Parallel()
	for _, mode := range []v1alpha1.SizingMode{v1alpha1.SizingOnCreate, v1alpha1.SizingInPlace} {
		d := newDay(t, mode, sizeMi(64, 128), 60*memory.MiB, 3)
		d.run(2*time.Hour, 5*time.Minute)
		p := d.pods[0]
		p.size.Limit, p.resized, p.resizedBy, p.resizedAt = 4*memory.GiB, true, "kubectl-edit", metav1.NewTime(d.now)
		d.run(10*time.Minute, time.Minute)
		d.replicas++
		d.scale()
		d.pods = slices.DeleteFunc(d.pods, func(other *dayPod) bool { return other == p })
		d.scale()
		d.run(10*time.Minute, time.Minute)
		d.deploy("restart")
		if most := slices.Max(d.limits()); most > 256*memory.MiB {
			d.fail("%s: pods have %v after a debug session in one", mode, d.limits())
		}
	}
}

// TestOtherPodsDoNotFollowADebugSession: the newest pod is raised by hand, its owner wants nothing lowered, and another
// pod is killed. The others get what their evidence asks for, and the session is left alone.
func TestOtherPodsDoNotFollowADebugSession(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(64, 256), 150*memory.MiB, 4)
	d.named.Spec.Sizing.Decrease = v1alpha1.DecreaseNever
	profile.Inherit([]*profile.Profile{d.named})
	d.run(2*time.Hour, 5*time.Minute)
	newest := d.pods[3]
	newest.size.Limit, newest.resized, newest.resizedBy = 4*memory.GiB, true, "kubectl-edit"
	newest.resizedAt = metav1.NewTime(d.now)
	d.run(2*time.Hour, 5*time.Minute)
	most := slices.Max(d.limits()[:3])
	if most > 512*memory.MiB || newest.size.Limit != 4*memory.GiB {
		d.fail("pods have %v after a debug session in the last", d.limits())
	}
	d.pods[0].need = 2 * most
	d.run(10*time.Minute, 10*time.Second)
	if got := slices.Max(d.limits()[:3]); got <= most || got >= 4*memory.GiB || newest.size.Limit != 4*memory.GiB {
		d.fail("pods have %v after a kill, and a debug session in the last", d.limits())
	}
}

// TestAWeekendAfterARestartDoesNotLowerTheWeek: a service keeps what it took, day and night for four weeks. A node
// upgrade replaces its pods on Friday evening, and until Monday they idle.
func TestAWeekendAfterARestartDoesNotLowerTheWeek(t *testing.T) {
	t.Parallel()
	for _, mode := range []v1alpha1.SizingMode{v1alpha1.SizingInPlace, v1alpha1.SizingOnCreate} {
		d := newDay(t, mode, sizeMi(4096, 4096), memory.GiB, 3) // it begins on a Friday at noon
		d.burst = 2 * memory.GiB
		d.run(28*24*time.Hour+8*time.Hour, 10*time.Minute)
		d.burst = 0
		d.deploy("node upgrade on Friday evening")
		d.run(48*time.Hour, 10*time.Minute)
		d.deploy("a restart on Sunday evening")
		d.run(13*time.Hour, 2*time.Minute)
		d.kills, d.burst = 0, 2*memory.GiB
		d.run(5*time.Minute, 10*time.Second)
		if d.kills > 0 {
			d.fail("%s: %d kills on Monday morning; now pods have %v", mode, d.kills, d.limits())
		}
	}
}

// TestAReleaseWithOtherMemoryKeepsWhatTheOneBeforeNeeded: four weeks with a weekly peak of 800Mi, then a release whose
// owner gives more because of it. Six days later the peak comes again. A limit that the owner lowered is not raised.
func TestAReleaseWithOtherMemoryKeepsWhatTheOneBeforeNeeded(t *testing.T) {
	t.Parallel()
	for _, limit := range []memory.Bytes{1536, 512} {
		d := newDay(t, v1alpha1.SizingInPlace, sizeMi(512, 1024), 200*memory.MiB, 3)
		d.need["web:2"] = d.need["web:1"]
		for range 4 {
			d.run(7*24*time.Hour-time.Hour, 10*time.Minute)
			d.burst = 600 * memory.MiB
			d.run(time.Hour, time.Minute)
			d.burst = 0
		}
		d.image, d.owner = "web:2", sizeMi(512, limit)
		d.deploy("a release with another limit")
		d.run(6*24*time.Hour, 10*time.Minute)
		if most := slices.Max(d.limits()); most > limit*memory.MiB {
			d.fail("raised to %s without need", most)
		}
		if limit < 800 {
			continue
		}
		d.kills, d.burst = 0, 600*memory.MiB
		d.run(5*time.Minute, 10*time.Second)
		if d.kills > 0 {
			d.fail("%d kills at the weekly peak; now pods have %v", d.kills, d.limits())
		}
	}
}

// TestDecreaseNeverGivesNoFirstLimit: no limit is above every limit, so that neither running nor new pods get one.
func TestDecreaseNeverGivesNoFirstLimit(t *testing.T) {
	t.Parallel()
	for _, mode := range []v1alpha1.SizingMode{v1alpha1.SizingInPlace, v1alpha1.SizingOnCreate} {
		d := newDay(t, mode, memory.Size{Request: 128 * memory.MiB}, 60*memory.MiB, 3)
		d.named.Spec.Sizing.Decrease = v1alpha1.DecreaseNever
		profile.Inherit([]*profile.Profile{d.named})
		d.run(27*time.Hour+10*time.Minute, 5*time.Minute)
		for range 2 {
			d.deploy("restart")
			d.run(time.Hour, time.Minute)
		}
		d.burst = 200 * memory.MiB
		d.run(5*time.Minute, 10*time.Second)
		if d.kills > 0 || slices.Max(d.limits()) > 0 {
			d.fail("%s: %d kills of pods without a limit; now they have %v", mode, d.kills, d.limits())
		}
	}
}

// TestAPartitionKeepsOtherPodsFromTheNewestPodsNumbers: the owner tries a larger limit in the newest pod of a
// StatefulSet, wants nothing lowered, and another pod is killed. The others get what their evidence asks for.
func TestAPartitionKeepsOtherPodsFromTheNewestPodsNumbers(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(64, 256), 150*memory.MiB, 4)
	d.named.Spec.Sizing.Decrease = v1alpha1.DecreaseNever
	profile.Inherit([]*profile.Profile{d.named})
	d.run(2*time.Hour, 5*time.Minute)
	d.owner.Limit, d.pods = 4*memory.GiB, d.pods[:3]
	d.scale()
	newest := d.pods[3]
	d.run(26*time.Hour, 5*time.Minute)
	most := slices.Max(d.limits()[:3])
	if most > 512*memory.MiB || newest.size.Limit != 4*memory.GiB {
		d.fail("pods have %v beside one whose owner gave it 4Gi", d.limits())
	}
	d.pods[0].need = 2 * most
	d.run(10*time.Minute, 10*time.Second)
	if got := slices.Max(d.limits()[:3]); got <= most || got >= 4*memory.GiB || newest.size.Limit != 4*memory.GiB {
		d.fail("pods have %v after a kill, beside one whose owner gave it 4Gi", d.limits())
	}
	d.replicas++
	d.scale()
	if last := d.pods[4]; last.size.Limit != 4*memory.GiB {
		d.fail("a new pod has %s, and its owner asks for 4Gi", last.size)
	}
}

// TestAnImageThatIsChangedInPlaceIsARelease: OpenKruise and kubectl set image change the image of pods that stay. They
// have no limit that was proven for another image, what the new one uses is not evidence of the old one, and the lower
// limit begins with one pod again.
func TestAnImageThatIsChangedInPlaceIsARelease(t *testing.T) {
	t.Parallel()
	for name, need := range map[string]memory.Bytes{"that needs more": 608, "that needs as much": 60} {
		d := newDay(t, v1alpha1.SizingInPlace, sizeMi(256, 1024), 60*memory.MiB, 3)
		d.run(28*time.Hour, 2*time.Minute)
		if d.lowered() != 3 {
			d.fail("nothing was lowered before the release: %v", d.limits())
		}
		d.image, d.need["web:2"] = "web:2", need*memory.MiB
		for _, p := range d.pods {
			p.last = &corev1.ContainerStateTerminated{
				StartedAt: metav1.NewTime(p.started), FinishedAt: metav1.NewTime(d.now),
				ContainerID: fmt.Sprintf("containerd://%s-%d", p.uid, p.restarts),
			}
			p.image, p.started, p.restarts = d.image, d.now, p.restarts+1
		}
		if d.step(); d.lowered() != 0 {
			d.fail("%s: a release in place has %v", name, d.limits())
		}
		for range 12 * 30 {
			if d.run(2*time.Minute, 2*time.Minute); d.lowered() > 0 {
				break
			}
		}
		if n := d.lowered(); d.kills > 0 || n != 1 {
			d.fail("%s: %d kills, and pods have %v", name, d.kills, d.limits())
		}
		for _, e := range d.state.containers["app"] {
			if most := lastDay(e.history); e != d.state.newest("app") && most > 100*memory.MiB {
				d.fail("%s: program %s used %s", name, e.Program, most)
			}
		}
	}
}

// TestAPodThatWasResizedBeforeMemfitSawItWasCreatedWithItsOwnLimit: what the webhook wrote down counts, and not what
// other pods of its time were created with.
func TestAPodThatWasResizedBeforeMemfitSawItWasCreatedWithItsOwnLimit(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(64, 512), 100*memory.MiB, 1)
	lower := profile.APISize(sizeMi(64, 256))
	d.shown.Containers = []v1alpha1.ContainerRecommendation{{Container: "app", NewPods: &lower}}
	d.replicas++
	d.scale()
	p := d.pods[1]
	p.need = 200 * memory.MiB
	d.now = d.now.Add(time.Minute)
	d.kubelet()
	p.size, p.resized = sizeMi(64, 1024), true
	d.step()
	if kills := d.state.ledger.All(); len(kills) != 1 || kills[0].Limit != 256*memory.MiB {
		d.fail("kills are %+v, want one at 256Mi", kills)
	}
}

// TestTheFirstPodWithALowerLimitIsCreatedAlone: with OnCreate, one of the pods of a rollout is the canary.
func TestTheFirstPodWithALowerLimitIsCreatedAlone(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingOnCreate, sizeMi(256, 512), 60*memory.MiB, 3)
	d.run(26*time.Hour+10*time.Minute, 2*time.Minute)
	d.deploy("rollout restart")
	if n := d.lowered(); n != 1 {
		d.fail("%d of 3 pods were created with a lower limit, want 1: %v", n, d.limits())
	}
	d.run(30*time.Minute, 30*time.Second)
	d.deploy("rollout restart after the watch")
	if got := d.limits(); slices.Max(got) >= d.owner.Limit {
		d.fail("after the canary was watched new pods get %v", got)
	}
	d.burst = slices.Max(d.limits())
	d.run(10*time.Second, 10*time.Second)
	d.burst = 0
	d.run(time.Minute, 10*time.Second)
	if n := slices.IndexFunc(d.log, func(line string) bool { return strings.Contains(line, "rolled back") }); n < 0 {
		d.fail("nothing says that the limit is rolled back")
	}
	d.deploy("rollout restart after a kill")
	if got := d.limits(); slices.Min(got) < d.owner.Limit {
		d.fail("after a kill at the lower limit new pods get %v", got)
	}
}

// TestAPauseKeepsTheSizeOfRunningPods: a pod that is created again during a pause must not get the limit that killed
// it.
func TestAPauseKeepsTheSizeOfRunningPods(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(32, 64), 92*memory.MiB, 1)
	d.run(5*time.Minute, 10*time.Second)
	raised := d.limits()[0]
	if raised < 92*memory.MiB {
		d.fail("not raised: %s", raised)
	}
	d.pause = "memfit.dev/pause on Namespace shop"
	d.step()
	d.pods = nil
	d.step()
	d.scale()
	if got := d.limits()[0]; got != raised {
		d.fail("a pod that was created again during a pause has %s, its predecessor had %s", got, raised)
	}
	before := d.kills
	d.run(10*time.Minute, 10*time.Second)
	if d.kills > before {
		d.fail("%d kills during the pause", d.kills-before)
	}
}

// TestAPauseDoesNotStopARollback: the limit did harm, and memfit set it.
func TestAPauseDoesNotStopARollback(t *testing.T) {
	t.Parallel()
	d := newDay(t, v1alpha1.SizingInPlace, sizeMi(256, 512), 60*memory.MiB, 3)
	d.run(27*time.Hour, time.Minute)
	if slices.Min(d.limits()) >= d.owner.Limit {
		d.fail("nothing was lowered: %v", d.limits())
	}
	d.pause = "memfit.dev/pause on Namespace shop"
	d.step()
	d.burst = 200 * memory.MiB
	d.run(time.Minute, 10*time.Second)
	if got := d.limits(); slices.Min(got) < d.owner.Limit {
		d.fail("a harmful lower limit stays during a pause: %v", got)
	}
}

// TestALimitSetBelowTheNeedIsRaisedAtCreation: the same program, whose owner gives it less than it is known to need.
func TestALimitSetBelowTheNeedIsRaisedAtCreation(t *testing.T) {
	t.Parallel()
	need := 150 * memory.MiB
	d := newDay(t, v1alpha1.SizingOnCreate, sizeMi(256, 512), need, 3)
	d.run(25*time.Hour, 3*time.Minute)
	d.owner = sizeMi(64, 64)
	d.deploy("a limit below the need")
	if least := slices.Min(d.limits()); least < need {
		d.fail("pods that need %s were created with %s", need, least)
	}
	d.owner = sizeMi(128, 256)
	d.deploy("a limit above the need")
	if least := slices.Min(d.limits()); least < d.owner.Limit {
		d.fail("the owner asks for %s, and a pod has %s", d.owner.Limit, least)
	}
}

// TestOrdinaryDays plays days at random and holds three invariants: no pod of a program gets less than its owner asks
// for, but for a canary (see check); at most one pod at a time runs under an unproven lower limit; and a kill at a
// limit that memfit lowered restores the old one for all.
func TestOrdinaryDays(t *testing.T) {
	t.Parallel()
	seeds := uint64(8)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 31))
			mode := []v1alpha1.SizingMode{
				v1alpha1.SizingOnCreate, v1alpha1.SizingInPlace, v1alpha1.SizingInPlaceOrEvict,
			}[rng.IntN(3)]
			d := newDay(t, mode, sizeMi(256, 512), memory.Bytes(40+rng.IntN(200))*memory.MiB, 2+rng.IntN(4))
			d.run(25*time.Hour, 3*time.Minute)
			for range 14 {
				d.ordinaryEvent(rng)
				d.run(time.Duration(1+rng.IntN(300))*time.Minute, 2*time.Minute)
			}
		})
	}
}

func (d *day) ordinaryEvent(rng *rand.Rand) {
	switch rng.IntN(10) {
	case 0:
		d.image = fmt.Sprintf("web:%d", 2+rng.IntN(4))
		d.learnNeed(rng)
		d.deploy("release")
	case 1:
		limit := memory.Bytes(128 + 64*rng.IntN(10))
		d.image, d.owner = fmt.Sprintf("web:%d", 2+rng.IntN(4)), sizeMi(limit/2, limit)
		d.learnNeed(rng)
		d.deploy("release with other memory")
	case 2:
		d.deploy("rollout restart")
	case 3:
		d.replicas = 1 + rng.IntN(6)
		d.scale()
	case 4:
		if i := rng.IntN(len(d.pods) + 1); i < len(d.pods) {
			d.note("drained %s", d.pods[i].name)
			d.pods = slices.Delete(d.pods, i, i+1)
			d.step()
			d.scale()
		}
	case 5:
		if d.pause == "" {
			d.pause = "memfit.dev/pause on Namespace shop"
		} else {
			d.pause = ""
		}
		d.note("pause %q", d.pause)
	case 6:
		d.note("the node is lost")
		d.pods = nil
		d.step()
		d.scale()
	case 7:
		d.killAtLowered()
	case 8:
		d.restart()
	case 9:
		d.named.Spec.Sizing.Mode = []v1alpha1.SizingMode{
			v1alpha1.SizingRecommend, v1alpha1.SizingOnCreate, v1alpha1.SizingInPlace, v1alpha1.SizingInPlaceOrEvict,
		}[rng.IntN(4)]
		profile.Inherit([]*profile.Profile{d.named})
		d.note("mode %s", d.named.Spec.Sizing.Mode)
	}
}

func (d *day) learnNeed(rng *rand.Rand) {
	if d.need[d.image] == 0 {
		d.need[d.image] = memory.Bytes(40+rng.IntN(80)) * memory.MiB
	}
}

// killAtLowered makes every pod need a little more than it has for a moment, and holds that what memfit had lowered is
// given back.
func (d *day) killAtLowered() {
	d.t.Helper()
	lowered := map[types.UID]bool{}
	for _, p := range d.pods {
		if p.size.Limit < p.owner.Limit && p.image == d.image && p.owner == d.owner {
			lowered[p.uid] = true
		}
	}
	d.note("burst")
	d.burst = slices.Max(append(d.limits(), 0))
	d.now = d.now.Add(5 * time.Second)
	d.kubelet()
	d.step()
	d.burst = 0
	d.run(3*time.Minute, 10*time.Second)
	if !resizes(d.named.Spec.Sizing.Mode) {
		return // running pods may keep their size
	}
	for _, p := range d.pods {
		if lowered[p.uid] && p.size.Limit < p.owner.Limit {
			d.fail("%s was killed at a limit that memfit had lowered, and has %s, not %s", p.name, p.size.Limit, p.owner.Limit)
		}
	}
}
