// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// ownPod is a pod of the type with a limit of 512Mi and one variable, or with arguments where name is empty.
func ownPod(runtime v1alpha1.RuntimeType, name, value string) Input {
	in := nodePod("512Mi", of(runtime, v1alpha1.TuningSpec{}))
	c := &in.Pod.Spec.Containers[0]
	if name == "" {
		c.Args = strings.Fields(value)
		return in
	}
	c.Env = []corev1.EnvVar{{Name: name, Value: value}}
	return in
}

// TestValuesThatCannotWork: the webhook, kubectl memfit inject and status have one warning each, which names the
// setting, what happens and what to set, and the user's value stays.
func TestValuesThatCannotWork(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Input
		want string // empty: no warning
	}{
		"Go: a unit of Kubernetes": {ownPod("Go", "GOMEMLIMIT", "1024Mi"),
			"GOMEMLIMIT=1024Mi stops a Go program at start (exit code 2, malformed GOMEMLIMIT): set GOMEMLIMIT=1024MiB"},
		"Go: an unknown unit":   {ownPod("Go", "GOMEMLIMIT", "0.5 GB"), "for example GOMEMLIMIT=900MiB"},
		"Go: more than 63 bits": {ownPod("Go", "GOMEMLIMIT", "9223372036854775807KiB"), "stops a Go program at start"},
		"Go: above the limit": {ownPod("Go", "GOMEMLIMIT", "2GiB"),
			"GOMEMLIMIT=2GiB is above the memory limit of 512Mi, so the kernel kills the process before the heap reaches it: " +
				"set at most GOMEMLIMIT=460MiB, or raise the limit"},
		"Go: zero":                      {ownPod("Go", "GOMEMLIMIT", "0"), "run all the time"},
		"Go: off":                       {ownPod("Go", "GOMEMLIMIT", "off"), ""},
		"Go: below the limit":           {ownPod("Go", "GOMEMLIMIT", "400MiB"), ""},
		"Go: as large as it":            {ownPod("Go", "GOMEMLIMIT", "536870912"), ""},
		"Go: filled in later":           {ownPod("Go", "GOMEMLIMIT", "$(LIMIT)"), ""},
		"unknown: a unit of Kubernetes": {ownPod("Auto", "GOMEMLIMIT", "1024Mi"), "stops a Go program at start"},
		"Java: GOMEMLIMIT is nothing":   {ownPod("JVM", "GOMEMLIMIT", "1024Mi"), ""},

		"Java: -Xmx above the limit": {ownPod("JVM", "JAVA_OPTS", "-Dx=y -Xmx4g"),
			"JAVA_OPTS: -Xmx4g is above the memory limit of 512Mi"},
		"Java: -Xmx on the command line": {ownPod("JVM", "", "-Xmx4g -jar a.jar"), "the command line: -Xmx4g is above"},
		"Java: MaxHeapSize above the limit": {ownPod("JVM", "JAVA_TOOL_OPTIONS", "-XX:MaxHeapSize=1g"),
			"set at most -XX:MaxHeapSize=307m"},
		"Java: -Xmx with a unit of Kubernetes": {ownPod("JVM", "JAVA_OPTS", "-Xmx300Mi"),
			"JAVA_OPTS: -Xmx300Mi stops the JVM at start (exit code 1), which takes a whole number with unit k, m or g: " +
				"set -Xmx300m"},
		"Java: -Xmx with a fraction":   {ownPod("JVM", "JAVA_OPTS", "-Xmx0.25g"), "k, m or g: set -Xmx256m"},
		"Java: JSON in JSON":           {ownPod("JVM", "CONFIG", `{"jvm":"{\"args\":\"-Xmx300m\"}"}`), ""},
		"Java: a list with commas":     {ownPod("JVM", "CONFIG", "-Xmx300m,-Xms300m"), ""},
		"Java: a share in a YAML list": {ownPod("JVM", "CONFIG", "jvm: [-XX:MaxRAMPercentage=60.0]"), ""},
		"Java: a share with its sign":  {ownPod("JVM", "JAVA_OPTS", "-XX:MaxRAMPercentage=60%"), "stops the JVM at start"},
		"Java: -Xms in JSON in JSON":   {ownPod("JVM", "CONFIG", `{"a":"{\"b\":\"-Xmx300m -Xms300m\"}"}`), ""},
		"Java: -Xms above -Xmx": {ownPod("JVM", "JAVA_OPTS", "-Xms400m -Xmx300m"),
			"JAVA_OPTS: -Xms400m is above -Xmx300m, so the JVM does not start (exit code 1): set -Xms to 300m or less"},
		"Java: -Xms above the limit":    {ownPod("JVM", "JAVA_OPTS", "-Xms1g"), "-Xms1g is above the memory limit"},
		"Java: the last -Xmx counts":    {ownPod("JVM", "JAVA_OPTS", "-Xmx4g -Xmx300m"), ""},
		"Java: a share of 150 %":        {ownPod("JVM", "JAVA_OPTS", "-XX:MaxRAMPercentage=150"), "stops the JVM at start"},
		"Java: a share of 0.75":         {ownPod("JVM", "JAVA_OPTS", "-XX:MaxRAMPercentage=0.75"), "not 75 %: set 75.0"},
		"Java: a share of 75":           {ownPod("JVM", "JAVA_OPTS", "-XX:MaxRAMPercentage=75"), ""},
		"Java: OpenJ9's stack":          {ownPod("JVM", "JAVA_OPTS", "-Xmso256k -Xmxcl900 -Xmx300m"), ""},
		"Java: hexadecimal":             {ownPod("JVM", "JAVA_OPTS", "-Xmx0x10000000"), ""},
		"Java: filled in by a script":   {ownPod("JVM", "JAVA_OPTS", "-Xmx${HEAP}"), ""},
		"unknown: -Xmx above the limit": {ownPod("Auto", "JAVA_OPTS", "-Xmx4g"), "JAVA_OPTS: -Xmx4g is above"},

		"Node.js: above the limit": {ownPod("NodeJS", "NODE_OPTIONS", "--max_old_space_size=4096"),
			"NODE_OPTIONS: --max-old-space-size=4096 (MiB) is above the memory limit of 512Mi"},
		"Node.js: bytes": {ownPod("NodeJS", "NODE_OPTIONS", "--max-old-space-size=536870912"),
			"set at most --max-old-space-size=384"},
		"Node.js: a unit": {ownPod("NodeJS", "NODE_OPTIONS", "--max-old-space-size=300Mi"),
			"stops the process at start, because NODE_OPTIONS takes a whole number of MiB: set --max-old-space-size=300"},
		"Node.js: a fraction": {ownPod("NodeJS", "NODE_OPTIONS", "--max-old-space-size=0.25g"),
			"set --max-old-space-size=256"},
		"Node.js: its default":      {ownPod("NodeJS", "NODE_OPTIONS", "--max-old-space-size="), ""},
		"Node.js: the command line": {ownPod("NodeJS", "", "--max-old-space-size=4096 app.js"), "the command line: --max"},
		"Node.js: below the limit":  {ownPod("NodeJS", "NODE_OPTIONS", "--max-old-space-size=300"), ""},
		"Deno: above the limit":     {ownPod("Deno", "DENO_V8_FLAGS", "--max-old-space-size=4096"), "DENO_V8_FLAGS: --max"},
		"Deno: one of two flags":    {ownPod("Deno", "DENO_V8_FLAGS", "--max-old-space-size=300,--expose-gc"), ""},
		"Deno: one of two is above": {ownPod("Deno", "DENO_V8_FLAGS", "--max-old-space-size=4096,--expose-gc"),
			"DENO_V8_FLAGS: --max-old-space-size=4096 (MiB) is above"},

		".NET: 70 is hexadecimal": {ownPod("DotNet", "DOTNET_GCHeapHardLimitPercent", "70"),
			"DOTNET_GCHeapHardLimitPercent=70 is hexadecimal for 112 %, which .NET ignores: set 0x46 for 70 %"},
		".NET: the old name":    {ownPod("DotNet", "COMPlus_GCHeapHardLimitPercent", "75"), "hexadecimal for 117 %"},
		".NET: 0x46":            {ownPod("DotNet", "DOTNET_GCHeapHardLimitPercent", "0x46"), ""},
		".NET: bytes":           {ownPod("DotNet", "DOTNET_GCHeapHardLimit", "400000000"), "set 0x17D78400 for 381Mi"},
		".NET: above the limit": {ownPod("DotNet", "DOTNET_GCHeapHardLimit", "0x40000000"), "set at most 0x18000000"},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.in.Pod.Spec.Containers[0].DeepCopy()
			plan := MakePlan(tc.in)
			warnings := slices.DeleteFunc(plan.Warnings(), func(w string) bool { return strings.Contains(w, "profile") })
			if tc.want == "" {
				if len(warnings) > 0 {
					t.Errorf("a value that works warns: %q", warnings)
				}
				return
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0], tc.want) {
				t.Errorf("the warnings are %q, want one with %q", warnings, tc.want)
			}
			if !strings.Contains(strings.Join(plan.Container("app").Advice(), "\n"), tc.want) {
				t.Errorf("status does not say it: %q", plan.Container("app").Advice())
			}
			after := inject(tc.in).Spec.Containers[0]
			for _, v := range before.Env {
				if !slices.ContainsFunc(after.Env, func(e corev1.EnvVar) bool {
					return e.Name == v.Name && strings.HasSuffix(e.Value, v.Value)
				}) {
					t.Errorf("%s=%s is missing: %v", v.Name, v.Value, after.Env)
				}
			}
			if !equality.Semantic.DeepEqual(before.Args, after.Args) {
				t.Errorf("the arguments are %q", after.Args)
			}
		})
	}
}

// TestTheFlagThatWinsIsChecked: a flag that another one overrides does no harm, and where scripts decide, nothing is
// known.
func TestTheFlagThatWinsIsChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		env  []corev1.EnvVar
		args []string
		want string
	}{
		"the command line wins over JAVA_TOOL_OPTIONS": {
			env: []corev1.EnvVar{{Name: "JAVA_TOOL_OPTIONS", Value: "-Xmx4g"}}, args: []string{"-Xmx300m"},
		},
		"_JAVA_OPTIONS wins over the command line": {
			env: []corev1.EnvVar{{Name: "_JAVA_OPTIONS", Value: "-Xmx4g"}}, args: []string{"-Xmx300m"},
			want: "_JAVA_OPTIONS: -Xmx4g is above",
		},
		"one of two variables wins": {
			env: []corev1.EnvVar{{Name: "JAVA_OPTS", Value: "-Xmx4g"}, {Name: "MAVEN_OPTS", Value: "-Xmx300m"}},
		},
		"both say so": {
			env:  []corev1.EnvVar{{Name: "JAVA_OPTS", Value: "-Xmx4g"}, {Name: "CATALINA_OPTS", Value: "-Xmx4g"}},
			want: "-Xmx4g is above",
		},
		"-Xms of one place, -Xmx of another": {
			env: []corev1.EnvVar{{Name: "JAVA_TOOL_OPTIONS", Value: "-Xms400m"}}, args: []string{"-Xmx300m"},
			want: "JAVA_TOOL_OPTIONS: -Xms400m is above -Xmx300m",
		},
		"a value from a Secret": {env: []corev1.EnvVar{{Name: "JAVA_OPTS", ValueFrom: &corev1.EnvVarSource{}}}},
	} {
		in := ownPod("JVM", "", "")
		in.Pod.Spec.Containers[0].Env, in.Pod.Spec.Containers[0].Args = tc.env, tc.args
		got := MakePlan(in).Warnings()
		if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestSizesWithoutAUnit: 512m is half a byte.
func TestSizesWithoutAUnit(t *testing.T) {
	for limit, want := range map[string]string{
		"512m": "limits.memory: 512m is in thousandths of a byte (m), so the container does not start: set 512Mi",
		"512":  "limits.memory: 512 is less than 1Mi, so the container does not start: set 512Mi",
		"512k": "limits.memory: 512k is less than 1Mi, so the container does not start: set 512Mi",
		"2Mi":  "", "1073741824500m": "",
	} {
		got := strings.Join(MakePlan(nodePod(limit, v1alpha1.MemoryProfileSpec{})).Warnings(), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("a limit of %s: %q, want %q", limit, got, want)
		}
	}
	in := nodePod("512Mi", v1alpha1.MemoryProfileSpec{})
	in.Pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128m")}
	const want = "requests.memory: 128m is in thousandths of a byte (m), so the scheduler reserves no memory: set 128Mi"
	if got := strings.Join(MakePlan(in).Warnings(), "\n"); !strings.Contains(got, want) {
		t.Errorf("a request of 128m: %q", got)
	}
	in.Pod.Spec.Resources = &corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512m")},
	}
	if got := strings.Join(MakePlan(in).Warnings(), "\n"); !strings.Contains(got, "the pod's limits.memory: 512m") {
		t.Errorf("a limit of the whole pod of 512m: %q", got)
	}
}

// TestWarningsAreShort: names and values are the user's, and a warning has at most 256 characters with what the webhook
// puts in front.
func TestWarningsAreShort(t *testing.T) {
	in := ownPod("Go", "GOMEMLIMIT", strings.Repeat("é", 4000))
	long := strings.Repeat("x", 63)
	in.Pod.Spec.Containers[0].Name = long
	for i := range 40 {
		name := fmt.Sprintf("%s%02d", long[:61], i)
		in.Pod.Spec.Volumes = append(in.Pod.Spec.Volumes, memoryVolume(name, ""))
		c := &in.Pod.Spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name})
	}
	in.Profile.Spec.Sizing.Mode = v1alpha1.SizingInPlace
	got := MakePlan(in).EveryWarning()
	if len(got) != 2 {
		t.Errorf("%d warnings, want one about the value and one about 40 volumes: %q", len(got), got)
	}
	for _, w := range got {
		if n := utf8.RuneCountInString("memfit: " + w); n > 256 {
			t.Errorf("a warning has %d characters: %s", n, w)
		}
	}
}

func memoryVolume(name, limit string) corev1.Volume {
	v := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory},
	}}
	if limit != "" {
		v.EmptyDir.SizeLimit = new(resource.MustParse(limit))
	}
	return v
}

// TestMemoryVolumes: which they are, how large, and who mounts them.
func TestMemoryVolumes(t *testing.T) {
	disk := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{
			memoryVolume("shm", "64Mi"), {Name: "disk", VolumeSource: disk},
			memoryVolume("cache", ""), memoryVolume("unused", "1Gi"), memoryVolume("zero", "0"),
		},
		InitContainers: []corev1.Container{{Name: "fill", VolumeMounts: []corev1.VolumeMount{{Name: "cache"}}}},
		Containers: []corev1.Container{
			{Name: "app", VolumeMounts: []corev1.VolumeMount{{Name: "shm"}, {Name: "cache"}, {Name: "cache"}, {Name: "disk"}}},
			{Name: "side", VolumeMounts: []corev1.VolumeMount{{Name: "shm"}, {Name: "zero"}}},
		},
	}}
	shm, cache, zero := MemoryVolume{"shm", 64 * memory.MiB}, MemoryVolume{Name: "cache"}, MemoryVolume{Name: "zero"}
	for name, want := range map[string][]MemoryVolume{"app": {shm, cache}, "side": {shm, zero}, "fill": {cache}} {
		if got := MemoryVolumes(pod, container(pod, name)); !slices.Equal(got, want) {
			t.Errorf("%s mounts %v, want %v", name, got, want)
		}
	}
}

// TestVolumesWithoutASizeLimitWarn where memfit sizes the pod or has derived a setting from the limit.
func TestVolumesWithoutASizeLimitWarn(t *testing.T) {
	for name, tc := range map[string]struct {
		runtime v1alpha1.RuntimeType
		sizing  v1alpha1.SizingMode
		tuning  v1alpha1.TuningMode
		limit   string
		want    string
	}{
		"sized in place":      {"Python", v1alpha1.SizingInPlace, "", "", "a resize does not change it"},
		"sized, nothing set":  {"Python", v1alpha1.SizingOnCreate, v1alpha1.TuningDisabled, "", "volume cache (medium"},
		"a setting":           {"NodeJS", v1alpha1.SizingRecommend, "", "", "settings leave no memory for that"},
		"neither":             {"Python", v1alpha1.SizingRecommend, "", "", ""},
		"it has a size limit": {"NodeJS", v1alpha1.SizingInPlace, "", "64Mi", ""},
	} {
		in := nodePod("512Mi", of(tc.runtime, v1alpha1.TuningSpec{Mode: tc.tuning}))
		in.Profile.Spec.Sizing.Mode = tc.sizing
		in.Pod.Spec.Volumes = []corev1.Volume{memoryVolume("cache", tc.limit)}
		in.Pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "cache"}}
		plan := MakePlan(in)
		got := strings.Join(plan.Warnings(), "\n")
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		advice := strings.Join(plan.Container("app").Advice(), "\n")
		if tc.limit == "" && !strings.Contains(advice, "no sizeLimit") {
			t.Errorf("%s: status does not name it: %q", name, advice)
		}
	}
}
