// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// of is a profile for one runtime.
func of(r v1alpha1.RuntimeType, tuning v1alpha1.TuningSpec) v1alpha1.MemoryProfileSpec {
	return v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: r}, Tuning: tuning}
}

// TestCapFollows: which heap caps are known to grow with the limit. Only those are that memfit or the owner set as a
// share where the runtime reads it, or that an agent read in replicas of the same image.
func TestCapFollows(t *testing.T) {
	env := func(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }
	secret := func(name string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: name}}}
	}
	none, percent := v1alpha1.TuningSpec{}, v1alpha1.TuningSpec{HeapPercent: new(int32(60))}
	off := v1alpha1.TuningSpec{Mode: v1alpha1.TuningDisabled}
	literal := v1alpha1.TuningSpec{HeapLimit: quantity("256Mi")}
	args := func(in Input, words ...string) Input {
		in.Pod.Spec.Containers[0].Args = words
		return in
	}
	envFrom := func(in Input) Input {
		in.Pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}},
		}}
		in.ConfigMapKeys = map[string]map[string]bool{"settings": {"KAFKA_HEAP_OPTS": true}}
		return in
	}
	// An agent read that the runtime computed its heap as that share of the limit.
	read := func(in Input, share int32) Input {
		const image = "example.test/app:1"
		in.Pod.Spec.Containers[0].Image = image
		in.Observed = map[string]Observed{"app": {Found: &v1alpha1.FoundRuntime{
			Image: image, Type: "JVM", HeapPercent: share,
		}}}
		return in
	}
	ours := of("JVM", percent)
	for name, tc := range map[string]struct {
		in              Input
		follows, frozen bool
		may             int32 // the share that the heap may be without being known to be
	}{
		"a JVM's own quarter":                {nodePod("512Mi", of("JVM", none)), false, false, 25},
		"a JVM's own quarter, read":          {read(nodePod("512Mi", of("JVM", none)), 25), true, false, 0},
		"a JVM's own quarter, rounded":       {read(nodePod("512Mi", of("JVM", none)), 26), true, false, 0},
		"a JVM's own quarter, but 80 % read": {read(nodePod("512Mi", of("JVM", none)), 80), false, false, 25},
		"a JVM with our share":               {nodePod("512Mi", ours), true, false, 0},
		"our share, and flags from a secret": {nodePod("512Mi", ours, secret("JAVA_OPTS")), false, false, 60},
		"our share, flags from a secret, read": {
			read(nodePod("512Mi", ours, secret("JAVA_OPTS")), 60), true, false, 0,
		},
		"our share, and envFrom with flags": {envFrom(nodePod("512Mi", ours)), false, false, 60},
		"our share, and envFrom of unknown keys": {
			func() Input {
				in := envFrom(nodePod("512Mi", ours))
				in.ConfigMapKeys = map[string]map[string]bool{"settings": {"A": true}}
				in.Pod, in.ConfigMapKeys = inject(in), nil
				return in
			}(), false, false, 60,
		},
		"a JVM with the user's share": {
			nodePod("512Mi", of("JVM", none), env("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=75 -XX:InitialRAMPercentage=75")),
			true, false, 0,
		},
		"the user's share for a start script": {
			nodePod("512Mi", of("JVM", none), env("JAVA_OPTS_KC_HEAP", "-XX:MaxRAMPercentage=70")), false, false, 70,
		},
		"the user's share for a start script, read": {
			read(nodePod("512Mi", of("JVM", none), env("JAVA_OPTS_KC_HEAP", "-XX:MaxRAMPercentage=70")), 70), true, false, 0,
		},
		"the user's share, and flags from a secret": {
			args(nodePod("512Mi", of("JVM", none), secret("JAVA_OPTS")), "-XX:MaxRAMPercentage=50"), false, false, 50,
		},
		"the user's share on the command line": {
			args(nodePod("512Mi", of("JVM", none)), "-XX:MaxRAMPercentage=50.0"), true, false, 0,
		},
		"the same, and we would set one": {
			nodePod("512Mi", ours, env("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=75")), true, false, 0,
		},
		"a JVM with -Xmx": {nodePod("512Mi", ours, env("JAVA_OPTS", "-Xms64m -Xmx300m")), false, false, 0},
		"a JVM with -Xmx that is as large as its quarter": {
			read(nodePod("512Mi", of("JVM", none), env("JAVA_OPTS", "-Xmx128m")), 25), false, false, 0,
		},
		"a JVM with -Xmx, nothing asked": {
			nodePod("512Mi", of("JVM", none), env("JAVA_TOOL_OPTIONS", "-Xmx300m")), false, false, 0,
		},
		"a JVM with -Xmx on the command line": {args(nodePod("512Mi", of("JVM", none)), "-Xmx300m"), false, false, 0},
		"a JVM with -Xmx, tuning off": {
			nodePod("512Mi", of("JVM", off), env("JAVA_TOOL_OPTIONS", "-Xmx300m")), false, false, 0,
		},
		"a JVM with -Xms alone": {nodePod("512Mi", ours, env("JAVA_TOOL_OPTIONS", "-Xms64m")), false, false, 25},
		"a JVM whose options are a secret": {
			nodePod("512Mi", of("JVM", none), secret("JAVA_TOOL_OPTIONS")), false, false, 25,
		},
		"a JVM without a limit": {nodePod("", of("JVM", none)), false, false, 25},
		"Kafka, as in the recipe": {
			nodePod("4Gi", of("JVM", none), env("KAFKA_HEAP_OPTS", "-Xms2g -Xmx2g")), false, false, 0,
		},
		"Cassandra":   {nodePod("4Gi", of("JVM", none), env("MAX_HEAP_SIZE", "2G")), false, false, 0},
		"ZooKeeper":   {nodePod("1Gi", ours, env("ZOO_HEAP_SIZE", "512")), false, false, 0},
		"Nacos":       {nodePod("2Gi", of("JVM", none), env("JVM_XMX", "1g")), false, false, 0},
		"Spark":       {nodePod("2Gi", of("JVM", none), env("SPARK_EXECUTOR_MEMORY", "1g")), false, false, 0},
		"OpenSearch":  {nodePod("2Gi", of("JVM", none), env("OPENSEARCH_HEAP_SIZE", "1g")), false, false, 0},
		"a secret's":  {nodePod("2Gi", ours, secret("ELASTICSEARCH_HEAP_SIZE")), false, false, 0},
		"Strimzi":     {nodePod("2Gi", of("JVM", none), env("STRIMZI_DYNAMIC_HEAP_PERCENTAGE", "50")), false, false, 0},
		"no launcher": {nodePod("2Gi", of("JVM", none), env("MEMORY", "1g")), false, false, 25},
		"node with our number": {
			nodePod("512Mi", of("NodeJS", none)), true, true, 0,
		},
		"node with heapLimit": {nodePod("1Gi", of("NodeJS", literal)), false, true, 0},
		"node with the user's number": {
			nodePod("512Mi", of("NodeJS", none), env("NODE_OPTIONS", "--max_old_space_size=300")), false, false, 0,
		},
		"node with the user's share": {
			nodePod("512Mi", of("NodeJS", none), env("NODE_OPTIONS", "--max-old-space-size-percentage=60")), false, false, 50,
		},
		"Go with a flag of its own": {args(nodePod("512Mi", of("Go", none)), "--auto-gomemlimit.ratio=0.7"), false, false, 0},
		"Go that limits itself":     {nodePod("512Mi", of("Go", byProgram)), true, false, 0},
		".NET's own three quarters": {nodePod("512Mi", of("DotNet", none)), false, false, 75},
		".NET with the user's share": {
			nodePod("512Mi", of("DotNet", percent), env("DOTNET_GCHeapHardLimitPercent", "0x32")), true, false, 0,
		},
		".NET with the user's number": {
			nodePod("512Mi", of("DotNet", percent), env("DOTNET_GCHeapHardLimit", "0x10000000")), false, false, 0,
		},
		"Python has no cap": {nodePod("512Mi", of("Python", none)), false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Created = true
			plan := MakePlan(tc.in)
			if follows, frozen := plan.Container("app").CapFollows(); follows != tc.follows || frozen != tc.frozen {
				t.Errorf("follows %t, frozen %t; want %t, %t", follows, frozen, tc.follows, tc.frozen)
			}
			g := plan.Container("app").Growth()
			if g.FollowsLimit != tc.follows || g.MayFollow != (tc.may > 0) || g.MayFollow && g.HeapPercent != tc.may {
				t.Errorf("%+v, want a heap that follows: %t, or may at %d %%", g, tc.follows, tc.may)
			}
		})
	}
	if follows, _ := MakePlan(nodePod("512Mi", of("JVM", none))).Container("nobody").CapFollows(); follows {
		t.Error("a container that is not there follows")
	}
}

// byProgram asks for the automemlimit library's share.
var byProgram = v1alpha1.TuningSpec{Go: &v1alpha1.GoTuning{MemoryLimitBy: "AUTOMEMLIMIT"}}

// TestCapSetBy: after a heap abort the advice names the text that sets the cap.
func TestCapSetBy(t *testing.T) {
	env := func(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }
	none, percent := v1alpha1.TuningSpec{}, v1alpha1.TuningSpec{HeapPercent: new(int32(60))}
	for name, tc := range map[string]struct {
		in   Input
		want string
	}{
		"flags": {
			nodePod("4Gi", of("JVM", none), env("KAFKA_HEAP_OPTS", "-Xmx2g")),
			"KAFKA_HEAP_OPTS has -Xmx2g: raise the heap cap there",
		},
		"a size": {
			nodePod("4Gi", of("JVM", percent), env("MAX_HEAP_SIZE", "2G")),
			"MAX_HEAP_SIZE=2G sets the heap cap in the start script of Cassandra: raise the heap cap there",
		},
		"a share": {
			nodePod("4Gi", of("JVM", none), env("JAVA_OPTS", "-XX:MaxRAMPercentage=50")),
			"JAVA_OPTS sets -XX:MaxRAMPercentage: raise the heap cap there",
		},
		"a secret": {
			nodePod("4Gi", of("JVM", percent), corev1.EnvVar{Name: "JAVA_OPTS", ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{Key: "opts"},
			}}),
			`JAVA_OPTS comes from key opts of Secret "", which memfit does not read: if it caps the heap, raise the cap there`,
		},
		"ours":    {nodePod("4Gi", of("JVM", percent)), ""},
		"nothing": {nodePod("4Gi", of("JVM", none)), ""},
	} {
		if got := MakePlan(tc.in).Container("app").CapSetBy(); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := MakePlan(nodePod("4Gi", of("JVM", none))).Container("nobody").CapSetBy(); got != "" {
		t.Errorf("a container that is not there: %q", got)
	}
}

// TestOwnHeap: a number of the owner is a statement of what the container needs, in each form that a runtime reads.
func TestOwnHeap(t *testing.T) {
	env := func(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }
	none, off := v1alpha1.TuningSpec{}, v1alpha1.TuningSpec{Mode: v1alpha1.TuningDisabled}
	four := v1alpha1.TuningSpec{Processes: new(int32(4))}
	for name, tc := range map[string]struct {
		in   Input
		want memory.Bytes
		by   string
	}{
		"JVM":              {nodePod("3Gi", of("JVM", none), env("JAVA_TOOL_OPTIONS", "-Xmx2g")), 2 * memory.GiB, "-Xmx2g"},
		"JVM, tuning off":  {nodePod("3Gi", of("JVM", off), env("JAVA_TOOL_OPTIONS", "-Xmx2g")), 2 * memory.GiB, "-Xmx2g"},
		"a start script's": {nodePod("3Gi", of("JVM", none), env("KAFKA_HEAP_OPTS", "-Xmx1g")), memory.GiB, "-Xmx1g"},
		"Neo4j": {
			nodePod("3Gi", of("JVM", none), env("NEO4J_server_memory_heap_max__size", "2g")), 2 * memory.GiB, "max__size=2g",
		},
		"Hadoop": {
			nodePod("3Gi", of("JVM", none), env("HADOOP_HEAPSIZE_MAX", "2048")), 2 * memory.GiB, "MAX=2048",
		},
		"ZooKeeper": {nodePod("3Gi", of("JVM", none), env("ZK_SERVER_HEAP", "1g")), memory.GiB, "ZK_SERVER_HEAP=1g"},
		"Strimzi": {
			nodePod("3Gi", of("JVM", none), env("STRIMZI_DYNAMIC_HEAP_MAX", "1073741824")), memory.GiB, "741824",
		},
		"a share":            {nodePod("3Gi", of("JVM", none), env("JAVA_MAX_MEM_RATIO", "50")), 0, ""},
		"not a number":       {nodePod("3Gi", of("JVM", none), env("MAX_HEAP_SIZE", "$(HEAP)")), 0, ""},
		"runtime unknown":    {nodePod("3Gi", of("Auto", none), env("JAVA_OPTS", "-Xmx2g")), 2 * memory.GiB, "-Xmx2g"},
		"a share of a JVM":   {nodePod("3Gi", of("JVM", none), env("JAVA_OPTS", "-XX:MaxRAMPercentage=60")), 0, ""},
		"a script's value":   {nodePod("3Gi", of("JVM", none), env("JAVA_OPTS", "-Xmx${HEAP}")), 0, ""},
		"memfit's own value": {nodePod("3Gi", of("NodeJS", none)), 0, ""},
		"Node.js": {
			nodePod("3Gi", of("NodeJS", none), env("NODE_OPTIONS", "--max_old_space_size=2048")), 2 * memory.GiB, "=2048",
		},
		"four processes of Node.js": {
			nodePod("3Gi", of("NodeJS", four), env("NODE_OPTIONS", "--max-old-space-size=512")), 2 * memory.GiB, "=512",
		},
		"Go":     {nodePod("3Gi", of("Go", none), env("GOMEMLIMIT", "2GiB")), 2 * memory.GiB, "GOMEMLIMIT=2GiB"},
		"Go off": {nodePod("3Gi", of("Go", none), env("GOMEMLIMIT", "off")), 0, ""},
		".NET": {
			nodePod("3Gi", of("DotNet", none), env("DOTNET_GCHeapHardLimit", "0x80000000")), 2 * memory.GiB, "0x80000000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := MakePlan(tc.in).Container("app").Growth()
			if g.OwnHeap != tc.want || !strings.Contains(g.OwnHeapBy, tc.by) || tc.want == 0 && g.OwnHeapBy != "" {
				t.Errorf("%s by %q, want %s by %q", g.OwnHeap, g.OwnHeapBy, tc.want, tc.by)
			}
		})
	}
}
