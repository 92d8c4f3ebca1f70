// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/podplan"
)

// restarted is a pod whose container has restarted so often, the last time at the given time.
func restarted(times int32, at time.Time, reason string, code int32, message string) *corev1.Pod {
	pod := build.Pod("shop", "web-1").On("node-1").
		Container("app", build.Limit("321Mi"), build.Started(began), build.Died(at, reason, code)).Obj()
	pod.CreationTimestamp, pod.UID = metav1.NewTime(began), "u1"
	status := &pod.Status.ContainerStatuses[0]
	last := status.LastTerminationState.Terminated
	last.ContainerID, last.Message = fmt.Sprintf("containerd://app-%d", times-1), message
	status.RestartCount, status.ContainerID = times, fmt.Sprintf("containerd://app-%d", times)
	return pod
}

// withVolume mounts a memory-backed volume in the container.
func withVolume(pod *corev1.Pod, sizeLimit string) *corev1.Pod {
	v := corev1.Volume{Name: "cache", VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory},
	}}
	if sizeLimit != "" {
		v.EmptyDir.SizeLimit = new(resource.MustParse(sizeLimit))
	}
	pod.Spec.Volumes = []corev1.Volume{v}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "cache", MountPath: "/cache"}}
	return pod
}

// raised is a pod that memfit created with 64Mi and resized since.
func raised(pod *corev1.Pod) *corev1.Pod {
	pod.Generation, pod.ManagedFields = 2, resizedBy(FieldManager)
	pod.Annotations = map[string]string{v1alpha1.InjectedAnnotation: `{"v":1,"profile":"MemoryProfile/web","containers":` +
		`{"app":{"limit":"64Mi","runtime":"native code"}}}`}
	return pod
}

// resizedBy are the managed fields of a pod that was resized.
func resizedBy(manager string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: manager, Subresource: "resize"}}
}

// debugged is a pod that got an ephemeral container, which its generation counts.
func debugged(pod *corev1.Pod) *corev1.Pod {
	pod.Generation = 2
	return pod
}

// TestOnlyAnotherLimitIsNamed: settings that the profile has changed since are out of date, and fit the limit, also
// after a debug session, and a resize that left the limit as it was.
func TestOnlyAnotherLimitIsNamed(t *testing.T) {
	p := build.Profile("shop", "web", v1alpha1.RuntimeNodeJS)
	pod := build.Pod("shop", "web-1").On("node-1").Container("app", build.Limit("512Mi")).Obj()
	podplan.Apply(pod, inject.MakePlan(inject.Input{Pod: pod, Profile: governing(p)}))
	p.Spec.Tuning.HeapPercent = new(int32(40))
	s := &Snapshot{Profile: governing(p), Governed: []*corev1.Pod{debugged(pod)}}
	if c := countCoverage(s, nil, &plans{}); c.Stale != 1 || c.outOfStep != "" {
		t.Errorf("after a debug session: %+v, %q", c.Coverage, c.outOfStep)
	}
	pod.ManagedFields = resizedBy(FieldManager)
	if c := countCoverage(s, nil, &plans{}); c.Stale != 1 || c.outOfStep != "" {
		t.Errorf("after a resize of the request: %+v, %q", c.Coverage, c.outOfStep)
	}
	pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse("640Mi")
	c := countCoverage(s, nil, &plans{})
	if c.Stale != 1 || !strings.HasSuffix(c.outOfStep, "delete this one at a convenient time") {
		t.Errorf("after a resize: %+v, %q", c.Coverage, c.outOfStep)
	}
}

// TestRestartsWithoutAKnownCause: the status counts them and repeats what the pod reports.
func TestRestartsWithoutAKnownCause(t *testing.T) {
	at := began.Add(time.Hour)
	const full = "Traceback (most recent call last):\n  File \"a.py\"\nOSError: [Errno 28] No space left on device\n"
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		later time.Duration
		want  v1alpha1.UnexplainedRestarts // no count: none are reported
		says  string
	}{
		"a volume that keeps its files": {
			pod: withVolume(restarted(26, at, "Error", 1, full), "64Mi"),
			want: v1alpha1.UnexplainedRestarts{
				Count: 26, ExitCode: 1, LastLines: `File "a.py" | OSError: [Errno 28] No space left on device`,
				MemoryVolumes: []string{"cache"},
			},
			says: "memory-backed volume cache keeps files across restarts: when full, delete the pod (kubectl delete " +
				"pod web-1 -n shop), or set a larger emptyDir.sizeLimit",
		},
		"a volume that did not grow with the limit": {
			pod: raised(withVolume(restarted(5, at, "Error", 135, ""), "")),
			want: v1alpha1.UnexplainedRestarts{
				Count: 5, ExitCode: 135, MemoryVolumes: []string{"cache"}, Resized: true,
			},
			says: "last exit 135 (SIGBUS) in pod web-1 at 2026-11-20T13:00:00Z; the limit was raised in place, but " +
				"memory-backed volume cache keeps the original size: delete the pod (kubectl delete pod web-1 -n shop), or set " +
				"emptyDir.sizeLimit",
		},
		"a volume of a pod that only had a debug session": {
			pod: debugged(withVolume(restarted(5, at, "Error", 135, ""), "")),
			want: v1alpha1.UnexplainedRestarts{
				Count: 5, ExitCode: 135, MemoryVolumes: []string{"cache"},
			},
			says: "memory-backed volume cache keeps files across restarts: when full, delete the pod",
		},
		"a wrapper that exits with 0": {
			pod:  restarted(23, at, "Completed", 0, ""),
			want: v1alpha1.UnexplainedRestarts{Count: 23},
			says: "container app restarted 23 times, cause unknown: last exit 0 in pod web-1",
		},
		"OOM kills":        {pod: restarted(23, at, "OOMKilled", 137, "")},
		"two":              {pod: restarted(2, at, "Error", 1, "")},
		"days ago":         {pod: restarted(26, at, "Error", 1, ""), later: 48 * time.Hour},
		"the node lost it": {pod: restarted(26, at, "ContainerStatusUnknown", 137, "")},
		"restarted to be resized": {pod: func() *corev1.Pod {
			pod := restarted(4, at, "Error", 143, "")
			pod.Generation = 3
			pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
				{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
			}
			return pod
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			_, e := Step(NewState(), killedPod(tc.pod, "", nil), at.Add(time.Minute+tc.later))
			got := e.Status.Containers[0].UnexplainedRestarts
			advisories := strings.Join(e.Status.Advisories, "\n")
			if tc.want.Count == 0 {
				if got != nil || strings.Contains(advisories, "restarted") {
					t.Errorf("reported: %+v, %s", got, advisories)
				}
				return
			}
			want := tc.want
			want.Pod, want.Time = "web-1", metav1.NewTime(at)
			if got == nil || got.Count != want.Count || got.ExitCode != want.ExitCode || got.LastLines != want.LastLines ||
				got.Pod != want.Pod || !got.Time.Equal(&want.Time) || got.Resized != want.Resized ||
				len(got.MemoryVolumes) != len(want.MemoryVolumes) {
				t.Fatalf("got %+v\nwant %+v", got, want)
			}
			if !strings.Contains(advisories, strings.TrimPrefix(tc.says, "container")) {
				t.Errorf("the advisories are %s\nwant %s", advisories, tc.says)
			}
			c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionOOMObserved)
			if c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, tc.says) || len(c.Message) > 400 {
				t.Errorf("OOMObserved is %s (%d bytes): %s", c.Status, len(c.Message), c.Message)
			}
		})
	}
}

// TestKillsExplainRestarts: of 23 restarts, 20 were OOM kills that are on file.
func TestKillsExplainRestarts(t *testing.T) {
	state, pod := NewState(), restarted(0, began, "Error", 0, "")
	pod.Status.ContainerStatuses[0].LastTerminationState = corev1.ContainerState{}
	at := began.Add(time.Minute)
	state, _ = Step(state, killedPod(pod, "", nil), at)
	for i := range int32(20) {
		at = at.Add(time.Minute)
		state, _ = Step(state, killedPod(restarted(i+1, at, "OOMKilled", 137, ""), "", nil), at.Add(time.Second))
	}
	at = at.Add(time.Minute)
	state, e := Step(state, killedPod(restarted(22, at, "Error", 1, ""), "", nil), at.Add(time.Second))
	if u := e.Status.Containers[0].UnexplainedRestarts; u != nil {
		t.Errorf("two restarts of 22 are not explained, which is not worth a report: %+v", u)
	}
	at = at.Add(time.Minute)
	_, e = Step(state, killedPod(restarted(23, at, "Error", 1, ""), "", nil), at.Add(time.Second))
	if u := e.Status.Containers[0].UnexplainedRestarts; u == nil || u.Count != 3 {
		t.Errorf("three of 23 are not explained: %+v", u)
	}
}

// TestAppliedNamesVolumesThatKeptTheirSize: a raise in place does not help a program whose volume is full.
func TestAppliedNamesVolumesThatKeptTheirSize(t *testing.T) {
	at := began.Add(time.Hour)
	healthy := restarted(0, at, "Error", 0, "")
	healthy.Status.ContainerStatuses[0].LastTerminationState = corev1.ContainerState{}
	lowered := raised(withVolume(healthy.DeepCopy(), ""))
	lowered.Annotations[v1alpha1.InjectedAnnotation] = strings.Replace(
		lowered.Annotations[v1alpha1.InjectedAnnotation], "64Mi", "512Mi", 1)
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		status metav1.ConditionStatus
		reason string
		says   string
		not    string
	}{
		"raised, and it crash-loops": {
			raised(withVolume(restarted(5, at, "Error", 1, ""), "")), metav1.ConditionFalse, v1alpha1.ReasonVolumeKeepsSize,
			"Container app restarted 5 times", "Every running pod",
		},
		"raised, and it runs": {
			raised(withVolume(healthy.DeepCopy(), "")), metav1.ConditionTrue, v1alpha1.ReasonUpToDate,
			"; the limit of pod web-1 was raised in place, but memory-backed volume cache keeps the original size: if the " +
				"volume needs more, delete the pod (kubectl delete pod web-1 -n shop), or set emptyDir.sizeLimit", "restarted",
		},
		"raised, with a sizeLimit": {
			raised(withVolume(healthy.DeepCopy(), "64Mi")), metav1.ConditionTrue, v1alpha1.ReasonUpToDate, "size", "volume",
		},
		"lowered": {lowered, metav1.ConditionTrue, v1alpha1.ReasonUpToDate, "size", "volume"},
		"created so": {
			withVolume(healthy.DeepCopy(), ""), metav1.ConditionTrue, v1alpha1.ReasonUpToDate, "size", "volume",
		},
		"restarts, cause unknown": {
			restarted(23, at, "Completed", 0, ""), metav1.ConditionTrue, v1alpha1.ReasonUpToDate,
			"; container app restarted 23 times, cause unknown: last exit 0", "volume",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := killedPod(tc.pod, "", nil)
			d := decider{s: s, st: NewState(), now: at.Add(time.Minute)}
			d.out.status.Containers = []v1alpha1.ContainerRecommendation{{Container: "app"}}
			d.reportRestarts()
			c := withProblems(
				conditionApplied.True(v1alpha1.ReasonUpToDate, "Every running pod has the recommended size"), s, &d.out,
			)
			if c.Status != tc.status || c.Reason != tc.reason || !strings.Contains(c.Message, tc.says) ||
				strings.Contains(c.Message, tc.not) || len(c.Message) > 400 {
				t.Errorf("Applied is %s, %s (%d bytes): %s", c.Status, c.Reason, len(c.Message), c.Message)
			}
		})
	}
}

// TestLastLines: they are the program's, so they are short and on one line.
func TestLastLines(t *testing.T) {
	for message, want := range map[string]string{
		"": "", "\n \n": "", "one": "one", "a\nb\nc\n\n": "b | c",
		strings.Repeat("x", 5000): strings.Repeat("x", 253) + "...",
		"a\r\nb\xff":              "a | b",
	} {
		if got := lastLines(message); got != want {
			t.Errorf("%.20q: %q, want %q", message, got, want)
		}
	}
}
