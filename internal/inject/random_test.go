// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
)

// chance draws pods and profiles that people would not write, but that an API server would accept. One seed draws one
// case.
type chance struct{ *rand.Rand }

func newChance(seed uint64) chance { return chance{rand.New(rand.NewPCG(seed, 1))} }

func (c chance) one(of int) bool { return c.IntN(of) == 0 }

func pick[T any](c chance, from ...T) T { return from[c.IntN(len(from))] }

// texts are values that have to be merged with, or survived.
var texts = []string{
	"", " ", "1", "400MiB", "off", "--require ./a.js", "--require \"./a b.js\" ", "--max-old-space-size=300",
	"--max_old_space_size=300 --inspect",
	"--max-semi-space-size=32", "x\n", "a\tb", "a\r", "\"open", "it's", "'a b' -Dx=y", "-Xmx512m",
	"-XX:MaxRAMPercentage=70 -Dx", "-XX:TrimNativeHeapInterval=5000",
	"-XX:-IgnoreUnrecognizedVMOptions", "$(OTHER) x", "$$(NOT) $(NODE_OPTIONS)", "glibc.malloc.arena_max=1",
	"/usr/lib/libjemalloc.so.2", "\\", "\"\\", "ü", "0x4B",
}

var names = []string{
	"NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "GOMEMLIMIT", "GOGC", "AUTOMEMLIMIT", "MALLOC_ARENA_MAX",
	"MALLOC_TRIM_THRESHOLD_", "DENO_V8_FLAGS",
	"DOTNET_GCHeapHardLimitPercent", "COMPlus_GCHeapHardLimit", "GLIBC_TUNABLES", "LD_PRELOAD", "JAVA_OPTS", "PATH", "A",
	"B",
}

func (c chance) env() []corev1.EnvVar {
	var out []corev1.EnvVar
	for range c.IntN(6) {
		v := corev1.EnvVar{Name: pick(c, names...)}
		switch {
		case c.one(6):
			v.ValueFrom = &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "k"}}
		case c.one(8):
			v.ValueFrom = &corev1.EnvVarSource{}
		default:
			v.Value = pick(c, texts...)
		}
		out = append(out, v)
	}
	return out
}

func (c chance) resources() corev1.ResourceRequirements {
	var r corev1.ResourceRequirements
	sizes := []string{"1", "16Mi", "64Mi", "200Mi", "256Mi", "512Mi", "1Gi", "3Gi", "32Gi", "536870912000m", "8Ei"}
	if !c.one(4) {
		limit := resource.MustParse(pick(c, sizes...))
		r.Limits = corev1.ResourceList{corev1.ResourceMemory: limit}
		if c.one(2) {
			r.Requests = corev1.ResourceList{corev1.ResourceMemory: limit}
		}
	}
	if c.one(3) {
		if r.Limits == nil {
			r.Limits = corev1.ResourceList{}
		}
		r.Limits[corev1.ResourceCPU] = resource.MustParse("1")
	}
	return r
}

func (c chance) container(name string) corev1.Container {
	out := corev1.Container{Name: name, Image: "example.test/app", Env: c.env(), Resources: c.resources()}
	out.Command = pick(
		c, nil, []string{"node", "a.js"}, []string{"java"}, []string{"/bin/sh", "-c", "node --max-old-space-size=1"},
		[]string{"tini", "--", "ruby"}, []string{"tini"}, []string{""}, []string{"env", "A=b", "deno"},
	)
	if c.one(3) {
		out.Args = []string{pick(c, texts...)}
	}
	if c.one(4) {
		out.EnvFrom = []corev1.EnvFromSource{
			{Prefix: pick(c, "", "APP_", "GO", "NODE_OPTIONS"), ConfigMapRef: &corev1.ConfigMapEnvSource{}},
		}
	}
	if c.one(4) {
		out.ResizePolicy = []corev1.ContainerResizePolicy{
			{ResourceName: pick(c, corev1.ResourceCPU, corev1.ResourceMemory), RestartPolicy: corev1.NotRequired},
		}
	}
	if c.one(3) {
		out.VolumeMounts = []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}}
	}
	return out
}

func (c chance) pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	for _, name := range []string{"app", "side", "more"}[:1+c.IntN(3)] {
		pod.Spec.Containers = append(pod.Spec.Containers, c.container(name))
	}
	for _, name := range []string{"migrate", "proxy"}[:c.IntN(3)] {
		init := c.container(name)
		init.ResizePolicy = nil
		if c.one(2) {
			init.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, init)
	}
	if c.one(2) {
		pod.Spec.Volumes = []corev1.Volume{{Name: "tmp",
			VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
				Medium:    corev1.StorageMediumMemory,
				SizeLimit: pick(c, nil, new(resource.MustParse("64Mi")), new(resource.MustParse("1Gi"))),
			}}}}
	}
	if c.one(5) {
		pod.Spec.Resources = &corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(pick(c, "1Gi", "1Gi", "3Gi"))},
		}
		if c.one(2) {
			pod.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(pick(c, "1Gi", "512Mi"))}
		}
	}
	pod.Spec.RestartPolicy = pick(c, "", corev1.RestartPolicyAlways, corev1.RestartPolicyNever)
	if c.one(4) {
		pod.Annotations = map[string]string{v1alpha1.RuntimeAnnotation: pick(c, "JVM:17.0.9", "NodeJS:20", "nonsense", "Go")}
	}
	return pod
}

func (c chance) runtime() v1alpha1.RuntimeSpec {
	return v1alpha1.RuntimeSpec{
		Type: pick(c, v1alpha1.RuntimeAuto, "", v1alpha1.RuntimeNodeJS, v1alpha1.RuntimeNodeJS, v1alpha1.RuntimeJVM,
			v1alpha1.RuntimeJVM, v1alpha1.RuntimeGo,
			v1alpha1.RuntimePython, v1alpha1.RuntimeRuby, v1alpha1.RuntimeDotNet, v1alpha1.RuntimePHP, v1alpha1.RuntimeDeno,
			v1alpha1.RuntimeNative, "Cobol"),
		Version: pick(c, "", "", "6", "8u191", "17.0.9", "20.11", "24", "1.18", "x"),
		Variant: pick(c, "", "", "", v1alpha1.VariantOpenJ9, v1alpha1.VariantBuildpack, v1alpha1.VariantNativeImage),
		Libc:    pick(c, "", v1alpha1.LibcAuto, v1alpha1.LibcMusl),
	}
}

func (c chance) tuning() v1alpha1.TuningSpec {
	t := v1alpha1.TuningSpec{Mode: pick(c, "", "", v1alpha1.TuningInject, v1alpha1.TuningDryRun, v1alpha1.TuningDisabled)}
	maybe := func(set func()) {
		if c.one(4) {
			set()
		}
	}
	maybe(func() { t.HeapPercent = new(pick(c, int32(-1), 10, 50, 75, 90, 100, 1000)) })
	maybe(func() { t.HeapLimit = quantity(pick(c, "1", "100Mi", "256Mi", "4Gi")) })
	maybe(func() { t.Processes = new(pick(c, int32(-1), 1, 2, 8, 1000)) })
	maybe(func() { t.Reserve = quantity(pick(c, "1", "64Mi", "200Mi", "8Ei")) })
	maybe(func() { t.ArenaMax = new(pick(c, int32(-1), 0, 1, 2, 64, 65)) })
	maybe(func() { t.TrimThreshold = quantity(pick(c, "1", "128Ki", "2Gi")) })
	maybe(func() {
		t.TrimInterval = &metav1.Duration{Duration: pick(c, -time.Second, 0, time.Millisecond, 30*time.Second, 48*time.Hour)}
	})
	maybe(func() {
		t.ConflictPolicy, t.Replace = v1alpha1.Replace, []v1alpha1.Setting{
			"GOMEMLIMIT", "--max-old-space-size", "-XX:TrimNativeHeapInterval", "MALLOC_ARENA_MAX",
		}
	})
	maybe(func() { t.ResizePolicy = pick(c, v1alpha1.ResizeKeep, v1alpha1.ResizeNotRequired, "Strange") })
	maybe(func() {
		t.Go = &v1alpha1.GoTuning{
			MemoryLimitBy: pick(c, "", "AUTOMEMLIMIT"), GC: pick(c, "", "OnlyAtLimit"), Cgo: pick(c, "", "Used"),
		}
	})
	maybe(func() {
		t.JVM = &v1alpha1.JVMTuning{G1PeriodicGCInterval: &metav1.Duration{Duration: pick(c, time.Nanosecond, time.Minute)}}
	})
	maybe(func() {
		t.NodeJS = &v1alpha1.NodeJSTuning{SemiSpace: quantity(pick(c, "1", "16Mi", "1Gi"))}
	})
	maybe(func() { t.DotNet = &v1alpha1.DotNetTuning{ConserveMemory: new(pick(c, int32(-1), 5, 10))} })
	return t
}

func (c chance) profile() *profile.Profile {
	spec := v1alpha1.MemoryProfileSpec{Runtime: c.runtime(), Tuning: c.tuning()}
	if c.one(3) {
		spec.Containers = append(
			spec.Containers,
			v1alpha1.ContainerPolicy{
				Name: pick(c, "side", "migrate", "*"), Mode: pick(c, "", "Ignored"), Runtime: new(c.runtime()),
				Tuning: new(c.tuning()),
			},
		)
	}
	n := &profile.Profile{
		Ref: v1alpha1.ProfileReference{Kind: profile.KindNamespaced, Name: "web"}, Namespace: "shop", Generation: 3,
		Spec: &spec,
	}
	profile.Inherit([]*profile.Profile{n}) // so that what is effective is merged once, as in the manager
	return n
}

func (c chance) sizes() map[string]Offer {
	if c.one(2) {
		return nil
	}
	size := func() memory.Bytes { return pick(c, 0, memory.MiB, 300*memory.MiB, memory.GiB, memory.Max) }
	return map[string]Offer{
		"app": {Size: memory.Size{Request: size(), Limit: size()}}, "migrate": {Size: memory.Size{Limit: size()}},
		"missing": {Size: memory.Size{Limit: size()}},
	}
}

func (c chance) observed() map[string]Observed {
	if c.one(2) {
		return nil
	}
	of := func() memory.Bytes { return pick(c, 0, memory.MiB, 150*memory.MiB, 400*memory.MiB, memory.Max) }
	return map[string]Observed{"app": {LiveSet: of(), HeapCap: of(), Limit: of()}, "nobody": {LiveSet: of()}}
}

// forged is a record that claims sizes, of which some are those that the pod has.
func (c chance) forged(pod *corev1.Pod) *record {
	size := func(have memory.Size) *sizeRecord {
		was := func(have memory.Bytes) string {
			return pick(c, "", quantityText(have), quantityText(have), "1", "16Mi", "300Mi", "8Ei")
		}
		return &sizeRecord{
			Limit: pick(c, "", quantityText(have.Limit), quantityText(have.Limit), "7Mi"), WasLimit: was(have.Limit),
			Request: pick(c, "", quantityText(have.Request), quantityText(have.Request), "7Mi"), WasRequest: was(have.Request),
		}
	}
	r := &record{Version: recordVersion, Containers: map[string]*containerRecord{}}
	if c.one(3) {
		r.Pod = size(constraints.WholeSize(pod))
	}
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if c.one(3) {
				continue
			}
			rec := &containerRecord{
				Size: size(constraints.SizeOf(&list[i].Resources)), Processes: pick(c, int32(-1), 0, 0, 8, 1000),
			}
			if c.one(3) {
				rec.Limit, rec.DryRun, rec.ResizePolicy = pick(c, "", "1", "512Mi (x)", "8Ei"), c.one(2), pick(c, "", "NotRequired")
			}
			r.Containers[list[i].Name] = rec
		}
	}
	return r
}

// facts are what the namespace and the nodes allow the pod; often nothing is said.
func (c chance) facts(pod *corev1.Pod) *constraints.Facts {
	if c.one(3) {
		return nil
	}
	some := func(from ...string) corev1.ResourceList {
		if c.one(2) {
			return nil
		}
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(pick(c, from...))}
	}
	var ranges []corev1.LimitRange
	for range c.IntN(3) {
		ranges = append(ranges,
			corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: pick(c, "a", "b")},
				Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
					{Type: corev1.LimitTypeContainer, Min: some("16Mi", "64Mi"), Max: some("256Mi", "600Mi", "4Gi"),
						MaxLimitRequestRatio: some("1", "1500m", "4")},
					{Type: corev1.LimitTypePod, Min: some("16Mi", "300Mi"), Max: some("700Mi", "5Gi"),
						MaxLimitRequestRatio: some("2")},
				}}})
	}
	var quotas []corev1.ResourceQuota
	for range c.IntN(2) {
		hard := corev1.ResourceList{}
		for _, name := range []corev1.ResourceName{corev1.ResourceLimitsMemory, corev1.ResourceRequestsMemory} {
			if c.one(2) {
				hard[name] = resource.MustParse(pick(c, "300Mi", "1Gi", "6Gi"))
			}
		}
		zero := corev1.ResourceList{
			corev1.ResourceLimitsMemory: resource.MustParse("0"), corev1.ResourceRequestsMemory: resource.MustParse("0"),
		}
		quotas = append(
			quotas,
			corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Name: "q"}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: zero},
			},
		)
	}
	facts := constraints.FactsOf(memory.WorkloadRef{}, nil, pod, constraints.Objects{
		LimitRanges: ranges, Quotas: quotas, Nodes: constraints.Nodes{LargestNode: pick(c, 0, 500*memory.MiB, 8*memory.GiB)},
	})
	return &facts
}

func (c chance) input() Input {
	in := Input{Pod: c.pod(), Profile: c.profile(), Sizes: c.sizes(), Observed: c.observed()}
	in.Facts = c.facts(in.Pod)
	if c.one(4) {
		in.Profile.Spec.Sizing.Limit = &v1alpha1.Bounds{Max: quantity(pick(c, "100Mi", "400Mi"))}
	}
	if c.one(4) {
		in.Profile.Spec.Sizing.Decrease = v1alpha1.DecreaseNever
	}
	if c.one(8) {
		in.Profile.Spec.Sizing.RequestPolicy = v1alpha1.RequestEqualsLimit
	}
	return in
}
