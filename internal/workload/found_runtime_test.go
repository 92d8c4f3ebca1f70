// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/profile"
)

// inspectedPod is a pod with its image and with what the agent of its node wrote.
type inspectedPod struct {
	image string
	node  string // that wrote the snapshot; the pod runs on node-NAME
	runs  *v1alpha1.InspectedRuntime
}

func withSnapshots(declared v1alpha1.RuntimeSpec, pods ...inspectedPod) *Snapshot {
	s := &Snapshot{
		Profile:   &profile.Profile{Spec: &v1alpha1.MemoryProfileSpec{Runtime: declared}},
		Snapshots: map[types.UID]*v1alpha1.MemorySnapshot{},
	}
	for i, p := range pods {
		name := string(rune('a' + i))
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID(name)},
			Spec: corev1.PodSpec{
				NodeName:   "node-" + name,
				Containers: []corev1.Container{{Name: "app", Image: p.image}},
			},
		}
		s.Governed, s.Pods = append(s.Governed, pod), append(s.Pods, pod)
		if p.runs == nil {
			continue
		}
		node := pod.Spec.NodeName
		if p.node != "" {
			node = p.node
		}
		s.Snapshots[pod.UID] = &v1alpha1.MemorySnapshot{Status: v1alpha1.MemorySnapshotStatus{
			NodeName: node,
			Containers: []v1alpha1.ContainerSnapshot{
				{Container: "app", Inspection: v1alpha1.InspectionDone, Runtime: p.runs},
			},
		}}
	}
	if len(s.Governed) > 0 {
		s.Template = s.Governed[0]
	}
	return s
}

func TestFoundRuntime(t *testing.T) {
	node := func(version string) *v1alpha1.InspectedRuntime {
		return &v1alpha1.InspectedRuntime{
			Type: "NodeJS", Version: version, Libc: "glibc 2.36", Evidence: []string{"the program says v" + version},
		}
	}
	jvm := &v1alpha1.InspectedRuntime{
		Type:     "JVM",
		Version:  "17.0.15+6",
		Libc:     "musl 1.2.5",
		Evidence: []string{"libjvm.so is mapped"},
	}
	of := func(version, image string, replicas int32) *v1alpha1.FoundRuntime {
		return &v1alpha1.FoundRuntime{
			Type: v1alpha1.RuntimeNodeJS, Version: version, Libc: v1alpha1.LibcGlibc, Image: image, Replicas: replicas,
			Evidence: "the program says v20.18.1",
		}
	}
	before := map[string]*v1alpha1.FoundRuntime{"app": of("18.1.0", "app:0", 3)}
	for name, c := range map[string]struct {
		pods   []inspectedPod
		before map[string]*v1alpha1.FoundRuntime
		want   *v1alpha1.FoundRuntime
	}{
		"no agent": {pods: []inspectedPod{{image: "app:1"}}},
		"all agree": {
			pods: []inspectedPod{{"app:1", "", node("20.18.1")}, {"app:1", "", node("20.18.1")}},
			want: of("20.18.1", "app:1", 2),
		},
		"several versions of one image": {
			pods: []inspectedPod{{"app:1", "", node("20.18.1")}, {"app:1", "", node("20.19.0")}},
			want: of("", "app:1", 2),
		},
		"one node says something else": {
			pods: []inspectedPod{
				{"app:1", "", node("20.18.1")}, {"app:1", "", node("20.18.1")}, {"app:1", "", jvm},
			},
		},
		"the other way round": {
			pods: []inspectedPod{{"app:1", "", jvm}, {"app:1", "", node("20.18.1")}}, before: before,
		},
		"another node than the pod's is not heard": {
			pods: []inspectedPod{{"app:1", "", node("20.18.1")}, {"app:1", "node-z", jvm}},
			want: of("20.18.1", "app:1", 1),
		},
		"a rollout: the newest image that was inspected counts": {
			pods: []inspectedPod{
				{"app:2", "", nil}, {"app:1", "", node("20.18.1")}, {"app:0", "", jvm}, {"app:1", "", node("20.18.1")},
			},
			before: before, want: of("20.18.1", "app:1", 2),
		},
		"nobody has looked yet: what was found before stands": {
			pods: []inspectedPod{{"app:1", "", nil}}, before: before, want: of("18.1.0", "app:0", 3),
		},
		"a runtime that memfit does not know": {
			pods: []inspectedPod{{"app:1", "", &v1alpha1.InspectedRuntime{Type: "COBOL"}}}, before: before,
		},
		"a version that is none": {
			pods: []inspectedPod{{"app:1", "", &v1alpha1.InspectedRuntime{
				Type: "NodeJS", Version: "; rm -rf", Libc: "glibc", Evidence: []string{"the program says v20.18.1"},
			}}},
			want: of("", "app:1", 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := withSnapshots(v1alpha1.RuntimeSpec{}, c.pods...)
			if diff := cmp.Diff(c.want, findRuntimes(s, c.before)["app"]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestHeapPercent: a heap that the runtime computed is a share of the limit that its container has now. Another share
// in another replica, or a heap that does not fit into the limit, proves nothing.
func TestHeapPercent(t *testing.T) {
	jvm := func(heap string) *v1alpha1.InspectedRuntime {
		f := &v1alpha1.InspectedRuntime{Type: "JVM", Version: "17.0.15"}
		if heap != "" {
			f.MaxHeap = new(resource.MustParse(heap))
		}
		return f
	}
	for name, c := range map[string]struct {
		heaps []string
		limit string
		want  int32
	}{
		"a quarter":                   {[]string{"128Mi"}, "512Mi", 25},
		"rounded":                     {[]string{"126Mi"}, "500Mi", 25},
		"no limit":                    {[]string{"128Mi"}, "", 0},
		"a number, or not read":       {[]string{""}, "512Mi", 0},
		"the share of the node":       {[]string{"16Gi"}, "512Mi", 0},
		"all agree":                   {[]string{"128Mi", "128Mi"}, "512Mi", 25},
		"one has another":             {[]string{"128Mi", "256Mi"}, "512Mi", 0},
		"one was not read":            {[]string{"128Mi", ""}, "512Mi", 0},
		"next to nothing of the node": {[]string{"1Mi"}, "4Gi", 0},
	} {
		var pods []inspectedPod
		for _, heap := range c.heaps {
			pods = append(pods, inspectedPod{"app:1", "", jvm(heap)})
		}
		s := withSnapshots(v1alpha1.RuntimeSpec{}, pods...)
		for _, pod := range s.Governed {
			pod.Spec.Containers[0].Resources.Limits = nil
			if c.limit != "" {
				pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{
					corev1.ResourceMemory: resource.MustParse(c.limit),
				}
			}
		}
		if got := findRuntimes(s, nil)["app"].HeapPercent; got != c.want {
			t.Errorf("%s: %d %%, want %d", name, got, c.want)
		}
	}
}

// TestVariablesOfTheImage: what the pod sets, memfit's own entries among them, is not a variable of the image.
func TestVariablesOfTheImage(t *testing.T) {
	s := withSnapshots(
		v1alpha1.RuntimeSpec{},
		inspectedPod{
			"app:1", "", &v1alpha1.InspectedRuntime{Type: "JVM", Variables: []string{"JAVA_TOOL_OPTIONS", "LD_PRELOAD"}},
		},
		inspectedPod{"app:1", "", &v1alpha1.InspectedRuntime{Type: "JVM"}},
	)
	if got := findRuntimes(s, nil)["app"].ImageVariables; len(got) != 1 || got[0] != "JAVA_TOOL_OPTIONS" {
		t.Errorf("the image's are %v, want JAVA_TOOL_OPTIONS", got)
	}
	s.Governed[0].Spec.Containers[0].Env = []corev1.EnvVar{{Name: "JAVA_TOOL_OPTIONS", Value: "-Xmx100m"}}
	if got := findRuntimes(s, nil)["app"].ImageVariables; len(got) != 0 {
		t.Errorf("the pod sets it, and the image's are %v", got)
	}
}

func TestDeclaredAgainstFound(t *testing.T) {
	for _, c := range []struct {
		declared v1alpha1.RuntimeSpec
		found    string
		want     string
	}{
		{v1alpha1.RuntimeSpec{}, "20.18.1", ""},
		{v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS}, "20.18.1", ""},
		{v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS, Version: "20"}, "20.18.1", ""},
		{v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS, Version: "20.18.1"}, "20.18.1", ""},
		{v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS, Version: "2"}, "20.18.1",
			"declares NodeJS 2, but replicas run NodeJS 20.18.1"},
		{v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS, Version: "18"}, "20.18.1",
			"declares NodeJS 18, but replicas run NodeJS 20.18.1"},
		{v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM, Version: "17"}, "20.18.1",
			"the profile declares JVM 17, but replicas run NodeJS"},
	} {
		s := withSnapshots(
			c.declared, inspectedPod{"app:1", "", &v1alpha1.InspectedRuntime{Type: "NodeJS", Version: c.found}},
		)
		got := findRuntimes(s, nil)["app"].Declared
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%+v: %q, want %q", c.declared, got, c.want)
		}
	}
}

// TestFoundRuntimeStands: a step publishes what was found, the settings of that runtime follow from it, and neither a
// step without snapshots nor a restart of memfit forgets it.
func TestFoundRuntimeStands(t *testing.T) {
	s := withSnapshots(
		v1alpha1.RuntimeSpec{},
		inspectedPod{"app:1", "", &v1alpha1.InspectedRuntime{Type: "NodeJS", Version: "20.18.1", Libc: "glibc 2.36"}},
	)
	now := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	st, e := Step(NewState(), s, now)
	s.Snapshots = nil
	st, again := Step(st, s, now.Add(time.Minute))
	_, restarted := Step(afterRestart(t, st), s, now.Add(2*time.Minute))
	for name, e := range map[string]Effects{"first": e, "without agents": again, "after a restart": restarted} {
		if len(e.Status.Containers) != 1 {
			t.Fatalf("%s: %d containers", name, len(e.Status.Containers))
		}
		c := e.Status.Containers[0]
		if c.FoundRuntime == nil || c.FoundRuntime.Version != "20.18.1" ||
			!strings.Contains(c.Runtime, "Node.js 20.18.1 (found") {
			t.Errorf("%s: found %+v, runtime %q", name, c.FoundRuntime, c.Runtime)
		}
	}
}
