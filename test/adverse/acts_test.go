// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package adverse

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// trial is one run of a workload in one mode.
type trial struct {
	workload  *workload
	mode      v1alpha1.SizingMode
	namespace string
	began     time.Time
	record    *record
	// failures are the exceeded bounds of workload.then.
	failures []string
}

func (s *trial) fail(format string, args ...any) {
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

// await reads the workload's state until done returns true. After the workload's time it records a failure and returns
// false.
func (s *trial) await(ctx context.Context, t *testing.T, what string, done func(pods []corev1.Pod) bool) bool {
	t.Helper()
	for began := time.Now(); ; time.Sleep(2 * time.Second) {
		s.read(ctx, t)
		if done(s.record.lastPods) {
			return true
		}
		if within := s.workload.within + s.record.extraTime(); time.Since(began) > within {
			s.fail("%s: not within %s", what, within)
			return false
		}
		s.record.deleteAsAdvised(ctx, t, s.namespace)
	}
}

// watch reads the workload's state repeatedly for the whole span.
func (s *trial) watch(ctx context.Context, t *testing.T, span time.Duration) {
	t.Helper()
	for began := time.Now(); time.Since(began) < span; time.Sleep(2 * time.Second) {
		s.read(ctx, t)
	}
}

func (s *trial) read(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := s.record.read(ctx, s.workload, s.namespace, s.began); err != nil {
		t.Fatalf("reading namespace %s: %v", s.namespace, err)
	}
}

// raised reports whether the workload is healthy and all pods have a higher limit than their template.
func (s *trial) raised(pods []corev1.Pod) bool {
	return s.record.healthyAfter > 0 && !slices.ContainsFunc(pods, func(p corev1.Pod) bool {
		return sizeOf(&p).Limit <= s.workload.limit
	})
}

func sizeOf(p *corev1.Pod) memory.Size {
	r := &p.Spec.Containers[0].Resources
	return memory.Size{
		Limit: memory.FromQuantity(*r.Limits.Memory()), Request: memory.FromQuantity(*r.Requests.Memory()),
	}
}

// kills returns how often containers of a pod ended: their restarts, or 1 for one that has not restarted yet.
func kills(p *corev1.Pod) (n int32) {
	for _, c := range p.Status.ContainerStatuses {
		if c.RestartCount == 0 && (c.State.Terminated != nil || c.LastTerminationState.Terminated != nil) {
			n++
		}
		n += c.RestartCount
	}
	return n
}

// readySince returns when a pod became ready, or false if it is not ready.
func readySince(p *corev1.Pod) (at time.Time, found bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

// releaseRaisesLimit deploys a version that needs more memory, with a higher limit in its template.
func releaseRaisesLimit(ctx context.Context, t *testing.T, s *trial) {
	if !s.await(ctx, t, "v1 was raised", s.raised) {
		return
	}
	if s.record.restartCount() == 0 {
		t.Fatal("v1 was not OOM-killed: the scenario did not happen")
	}
	const need = "600"
	limit, request := 1024*mi, 640*mi
	isNew := func(p corev1.Pod) bool {
		return slices.Contains(p.Spec.Containers[0].Env, corev1.EnvVar{Name: "MIB", Value: need})
	}
	created := createdPods(ctx, t, s.namespace)
	for uid := range s.record.pods {
		s.record.deleted[uid] = true
	}
	var d appsv1.Deployment
	if err := k8s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: appName}, &d); err != nil {
		t.Fatal(err)
	}
	before := d.DeepCopy()
	c := &d.Spec.Template.Spec.Containers[0]
	c.Env[0].Value = need
	c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: limit.Quantity()}
	c.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: request.Quantity()}
	if err := k8s.Patch(ctx, &d, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	killed := map[types.UID]int32{}
	s.await(ctx, t, "the rollout of v2", func(pods []corev1.Pod) bool {
		for i := range pods {
			if isNew(pods[i]) {
				killed[pods[i].UID] = kills(&pods[i])
			}
		}
		return len(pods) == s.workload.replicas && !slices.ContainsFunc(pods, func(p corev1.Pod) bool {
			_, ok := readySince(&p)
			return !ok || !isNew(p)
		})
	})
	s.watch(ctx, t, 45*time.Second)
	for i := range s.record.lastPods {
		if p := s.record.lastPods[i]; isNew(p) {
			killed[p.UID] = kills(&p)
		}
	}
	pods := slices.DeleteFunc(created(), func(p corev1.Pod) bool { return !isNew(p) })
	if len(pods) < s.workload.replicas {
		t.Fatalf("the watch reported %d new pods of v2, want at least %d", len(pods), s.workload.replicas)
	}
	for i := range pods {
		p := &pods[i]
		if size := sizeOf(p); size.Limit < limit || size.Request < request {
			s.fail("pod %s of v2 was created with limit %s and request %s, but its template has %s and %s", p.Name, size.Limit,
				size.Request, limit, request)
		}
	}
	for uid, n := range killed {
		if n > 0 {
			s.fail("pod %s of v2 was killed %s, want none", uid, format.Count(n, "time"))
		}
	}
}

// createdPods returns a function that returns all pods as they were at their creation, before memfit resizes them.
func createdPods(ctx context.Context, t *testing.T, namespace string) func() []corev1.Pod {
	t.Helper()
	w, err := clientset.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{LabelSelector: "app=" + appName})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	var mu sync.Mutex
	var created []corev1.Pod
	go func() {
		for e := range w.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok && e.Type == watch.Added {
				mu.Lock()
				created = append(created, *p)
				mu.Unlock()
			}
		}
	}()
	return func() []corev1.Pod {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(created)
	}
}

const (
	// burstAnnotation on a pod is the time at which its program exceeds the limit, in seconds since 1970. The program
	// reads it from a downward API volume, so that running replicas burst in the same second.
	burstAnnotation = "adverse-burst"
	// burstIn is the time for kubelets to update that volume in every pod.
	burstIn = 15 * time.Second
	// burstReady and burstRestarts bound the recovery from a burst of all replicas.
	burstReady    = 20 * time.Second
	burstRestarts = 40
)

// simultaneous makes all replicas exceed their limit in the same second.
func simultaneous(ctx context.Context, t *testing.T, s *trial) {
	if !s.await(ctx, t, "all replicas ran", func([]corev1.Pod) bool { return s.record.healthyAfter > 0 }) {
		return
	}
	if s.record.restartCount() > 0 {
		t.Fatal("replicas were killed before the burst: the scenario did not happen")
	}
	at := time.Now().Add(burstIn).Truncate(time.Second)
	for i := range s.record.lastPods {
		patch(t, &s.record.lastPods[i], fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, burstAnnotation, at.Unix()))
	}
	s.watch(ctx, t, time.Until(at))
	s.record.healthyAfter, s.record.since = 0, time.Now()
	if !s.await(ctx, t, "all replicas were raised and ready", s.raised) {
		return
	}
	last, starts := lastReady(s.record.lastPods, at)
	restarts := s.record.restartCount()
	if restarts == 0 {
		t.Fatal("no replica was killed: the scenario did not happen")
	}
	s.record.notes = append(s.record.notes, fmt.Sprintf(
		"the last replica ready after %s (bound %s, of which %s for the start of a container), %d restarts (bound %d)", last,
		burstReady+starts, starts, restarts, burstRestarts,
	))
	if last > burstReady+starts {
		s.fail("the last replica was ready after %s, at most %s allowed", last, burstReady+starts)
	}
	if restarts > burstRestarts {
		s.fail("%d restarts, at most %d allowed", restarts, burstRestarts)
	}
}

// lastReady returns the time from the burst until the last pod was ready, and the longest time that the node took to
// restart a container. The latter only counts containers with one restart, because further restarts include back-off.
func lastReady(pods []corev1.Pod, burst time.Time) (last, starts time.Duration) {
	for i := range pods {
		since, _ := readySince(&pods[i])
		for _, c := range pods[i].Status.ContainerStatuses {
			running, end := c.State.Running, c.LastTerminationState.Terminated
			if running == nil || end == nil {
				continue
			}
			last = max(last, running.StartedAt.Sub(burst), since.Sub(burst))
			if c.RestartCount == 1 {
				starts = max(starts, running.StartedAt.Sub(end.FinishedAt.Time))
			}
		}
	}
	return last, starts
}

// pauseThenReschedule pauses the namespace and deletes a pod that memfit has raised.
func pauseThenReschedule(ctx context.Context, t *testing.T, s *trial) {
	if !s.await(ctx, t, "all replicas were raised", s.raised) {
		return
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	patch(t, ns, fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.PauseAnnotation))
	s.watch(ctx, t, 10*time.Second)
	var before corev1.Pod
	key := client.ObjectKey{Namespace: s.namespace, Name: appName + "-0"}
	if err := k8s.Get(ctx, key, &before); err != nil {
		t.Fatal(err)
	}
	s.record.deleted[before.UID] = true
	if err := k8s.Delete(ctx, &before); err != nil {
		t.Fatal(err)
	}
	var next corev1.Pod
	if !s.await(ctx, t, "the StatefulSet recreated the pod", func(pods []corev1.Pod) bool {
		i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == before.Name && p.UID != before.UID })
		if i >= 0 {
			next = pods[i]
		}
		return i >= 0
	}) {
		return
	}
	if had, has := sizeOf(&before), sizeOf(&next); has.Limit < had.Limit || has.Request < had.Request {
		s.fail("%s was recreated with limit %s and request %s, but its predecessor had %s and %s", next.Name, has.Limit,
			has.Request, had.Limit, had.Request)
	}
	s.watch(ctx, t, time.Minute)
	if err := k8s.Get(ctx, key, &next); err != nil {
		t.Fatal(err)
	}
	if n := kills(&next); n > 0 {
		s.fail("%s was killed %s within a minute after it was recreated, want none", next.Name, format.Count(n, "time"))
	}
	if _, ok := readySince(&next); !ok {
		s.fail("%s was not ready a minute after it was recreated", next.Name)
	}
}

// secondContainer is a container name that occurs in no other text of memfit.
const secondContainer = "billing"

// eventsNameSecond waits for Events that name the container that is killed second.
func eventsNameSecond(ctx context.Context, t *testing.T, s *trial) {
	for _, reason := range []string{v1alpha1.EventOOMKilled, v1alpha1.EventResizing, v1alpha1.EventResized} {
		s.await(ctx, t, "an Event "+reason+" that names container "+secondContainer, func([]corev1.Pod) bool {
			var events corev1.EventList
			if err := k8s.List(ctx, &events, client.InNamespace(s.namespace)); err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
				return e.Reason == reason && strings.Contains(e.Message, secondContainer)
			})
		})
	}
}

// debugSession runs a program that exceeds the limit in a healthy container, with kubectl exec.
func debugSession(ctx context.Context, t *testing.T, s *trial) {
	if !s.await(ctx, t, "all replicas ran", func([]corev1.Pod) bool { return s.record.healthyAfter > 0 }) {
		return
	}
	pod := s.record.lastPods[0].Name
	inPod := func(command ...string) (code int, output string) {
		arguments := append([]string{"-n", s.namespace, "exec", pod, "--"}, command...)
		out, err := exec.CommandContext(ctx, "kubectl", arguments...).CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatalf("kubectl exec: %v", err)
		}
		if exit != nil {
			code = exit.ExitCode()
		}
		return code, string(out)
	}
	switch code, out := inPod("sh", "-c", "if test -e /sys/fs/cgroup/cgroup.controllers; then exit 42; fi"); code {
	case 0:
	case 42:
		t.Skip("cgroup v2 kills the container together with the session (memory.oom.group)")
	default:
		t.Fatalf("kubectl exec in pod %s exited with %d: %s", pod, code, out)
	}
	if code, out := inPod("python3", "-c", `bytearray(b"x") * (150<<20)`); code != 137 {
		t.Fatalf("the session in pod %s exited with %d instead of an OOM kill: %s", pod, code, out)
	}
	s.watch(ctx, t, after) // a kernel counter can reach memfit after 50 s
	if n := s.record.restartCount(); n > 0 {
		t.Fatalf("the kernel killed the container (%s) instead of the session: the scenario did not happen",
			format.Count(n, "restart"))
	}
}

// memoryVolume is the name of a memory-backed volume, which a resize of its pod does not enlarge.
const memoryVolume = "spool-in-memory"

// volumeKeepsSize waits for the condition about a memory-backed volume that is too small for its container.
func volumeKeepsSize(ctx context.Context, t *testing.T, s *trial) {
	s.await(ctx, t, "Applied is False with reason "+v1alpha1.ReasonVolumeKeepsSize+" and names volume "+memoryVolume,
		func([]corev1.Pod) bool {
			const applied = v1alpha1.ConditionApplied + "=False " + v1alpha1.ReasonVolumeKeepsSize + ": "
			return slices.ContainsFunc(strings.Split(s.record.texts, "\n"), func(line string) bool {
				return strings.HasPrefix(line, applied) && strings.Contains(line, memoryVolume)
			})
		})
}

// Programs of these scenarios. fill waits for $WAIT seconds and allocates $MIB MiB; burst allocates 48 MiB at the time
// of its annotation; spool is OOM-killed once and then, with a higher limit, writes more than fits into the volume.
const (
	fill = `import os, time
time.sleep(int(os.environ.get("WAIT", "0")))
kept = []
for i in range(int(os.environ["MIB"])): kept.append(bytearray(b"x")*(1<<20)); time.sleep(0.006)
while True: time.sleep(1)`
	burst = `import time
def at():
    try: return float(open('/when/at').read())
    except (OSError, ValueError): return 0
while not 0 < at() <= time.time(): time.sleep(0.1)
kept = []
for i in range(48): kept.append(bytearray(b"x")*(1<<20)); time.sleep(0.005)
while True: time.sleep(1)`
	spool = `import os, time
def limit():
    for path in '/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes':
        if os.path.exists(path): return int(open(path).read())
    return 0
time.sleep(2)
if not os.path.exists('/spool/began'):
    open('/spool/began', 'w').close()
    kept = bytearray(b"x") * (100<<20)
for i in range(100):
    if limit() > 64<<20: break
    time.sleep(0.2)
with open('/spool/f', 'wb') as f:
    for i in range(100): f.write(bytes(1<<20))
while True: time.sleep(1)`
)

// fills runs fill with its settings.
func fills(mib, wait int) podChange {
	return func(p *corev1.PodSpec) {
		python(fill)(p)
		p.Containers[0].Env = []corev1.EnvVar{
			{Name: "MIB", Value: strconv.Itoa(mib)}, {Name: "WAIT", Value: strconv.Itoa(wait)},
		}
	}
}

// burstVolume mounts the annotation of the pod as a file.
func burstVolume(p *corev1.PodSpec) {
	p.Volumes = append(p.Volumes, corev1.Volume{Name: "when", VolumeSource: corev1.VolumeSource{
		DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{
			Path:     "at",
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + burstAnnotation + "']"},
		}}},
	}})
	p.Containers[0].VolumeMounts = append(
		p.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "when", MountPath: "/when"},
	)
}

// spoolVolume adds a memory-backed volume without sizeLimit. The termination message has the last lines of the log.
func spoolVolume(p *corev1.PodSpec) {
	emptyDir(p, memoryVolume, "/spool")
	p.Volumes[len(p.Volumes)-1].EmptyDir.Medium = corev1.StorageMediumMemory
	p.Containers[0].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
}
