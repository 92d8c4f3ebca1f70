// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

func quantity(s string) *v1alpha1.MemoryQuantity {
	return v1alpha1.NewMemoryQuantity(resource.MustParse(s))
}

func of(spec v1alpha1.MemoryProfileSpec) *Profile {
	return &Profile{Ref: v1alpha1.ProfileReference{Kind: KindNamespaced, Name: "p"}, Namespace: "shop", Spec: &spec}
}

func TestContainerRuntime(t *testing.T) {
	node := v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS, Version: "20"}
	spec := v1alpha1.MemoryProfileSpec{Runtime: node, Containers: []v1alpha1.ContainerPolicy{
		{Name: "*", Runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeAuto}},
		{Name: "app"},
		{Name: "gows", Runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo}},
		{Name: "logger", Mode: "Ignored"},
		{Name: "linkerd-proxy", Runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNative}},
	}}
	says := func(text string) map[string]string { return map[string]string{v1alpha1.RuntimeAnnotation: text} }

	for name, tc := range map[string]struct {
		container   string
		annotations map[string]string
		want        v1alpha1.RuntimeSpec
		wantBy      string
		wantNote    string
		wantIgnored bool
		wantListed  bool
	}{
		"the profile's": {
			container: "app", want: v1alpha1.RuntimeSpec{Type: "NodeJS", Version: "20", Libc: "Auto"}, wantBy: "the profile",
			wantListed: true,
		},
		"the entry's": {
			container: "gows", want: v1alpha1.RuntimeSpec{Type: "Go", Libc: "Auto"}, wantBy: "the profile", wantListed: true,
		},
		"an ignored container": {
			container: "logger", want: v1alpha1.RuntimeSpec{Type: "NodeJS", Version: "20", Libc: "Auto"}, wantBy: "the profile",
			wantIgnored: true, wantListed: true,
		},
		"star is for the rest": {
			container: "proxy", want: v1alpha1.RuntimeSpec{Type: "Auto", Libc: "Auto"},
		},
		"the annotation speaks where type is Auto": {
			container: "proxy", annotations: says("jvm:17.0.9"),
			want: v1alpha1.RuntimeSpec{Type: "JVM", Version: "17.0.9", Libc: "Auto"}, wantBy: "annotation memfit.dev/runtime",
		},
		"the annotation cannot overrule a profile": {
			container: "app", annotations: says("JVM"), want: v1alpha1.RuntimeSpec{Type: "NodeJS", Version: "20", Libc: "Auto"},
			wantBy: "the profile", wantListed: true,
		},
		"the annotation may say Auto": {
			container: "proxy", annotations: says("Auto"), want: v1alpha1.RuntimeSpec{Type: "Auto", Libc: "Auto"},
		},
		"a mesh's sidecar is not what the app is": {
			container: "istio-proxy", annotations: says("JVM"), want: v1alpha1.RuntimeSpec{Type: "Auto", Libc: "Auto"},
		},
		"a mesh's sidecar that the profile names": {
			container: "linkerd-proxy", want: v1alpha1.RuntimeSpec{Type: "Native", Libc: "Auto"}, wantBy: "the profile",
			wantListed: true,
		},
		"an unknown runtime is reported, not taken": {
			container: "proxy", annotations: says("Nodejs20"), want: v1alpha1.RuntimeSpec{Type: "Auto", Libc: "Auto"},
			wantNote: `is "Nodejs20", which is not a runtime that memfit knows: write one of Auto, NodeJS, JVM`,
		},
		"a bad version is reported, not taken": {
			container: "proxy", annotations: says("JVM:latest"), want: v1alpha1.RuntimeSpec{Type: "Auto", Libc: "Auto"},
			wantNote: `"latest" is not a version`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := of(spec).Container(tc.container, tc.annotations)
			if diff := cmp.Diff(tc.want, got.Runtime); diff != "" {
				t.Errorf("runtime (-want +got):\n%s", diff)
			}
			if got.RuntimeDeclaredBy != tc.wantBy || got.Managed == tc.wantIgnored || got.Listed != tc.wantListed {
				t.Errorf(
					"declared by %q managed %v listed %v, want %q %v %v", got.RuntimeDeclaredBy, got.Managed, got.Listed, tc.wantBy,
					!tc.wantIgnored, tc.wantListed,
				)
			}
			if notes := strings.Join(got.Notes, "\n"); !strings.Contains(notes, tc.wantNote) ||
				(tc.wantNote == "") != (notes == "") {
				t.Errorf("notes %q, want %q", notes, tc.wantNote)
			}
		})
	}
}

func TestContainerTuning(t *testing.T) {
	base := v1alpha1.TuningSpec{
		HeapPercent: new(int32(60)), Processes: new(int32(2)), Reserve: quantity("64Mi"), ArenaMax: new(int32(2)),
		Go:           &v1alpha1.GoTuning{Cgo: "Used"},
		TrimInterval: &metav1.Duration{Duration: 30 * time.Second},
	}
	replacing := base
	replacing.ConflictPolicy, replacing.Replace = v1alpha1.Replace, []v1alpha1.Setting{"GOMEMLIMIT"}
	dry := base
	dry.Mode = v1alpha1.TuningDryRun

	for name, tc := range map[string]struct {
		base  v1alpha1.TuningSpec
		entry v1alpha1.TuningSpec
		want  func(*v1alpha1.TuningSpec)
	}{
		"an empty entry changes nothing": {base: base, want: func(*v1alpha1.TuningSpec) {}},
		"a field replaces that field and no other": {
			base: base, entry: v1alpha1.TuningSpec{ArenaMax: new(int32(0))},
			want: func(t *v1alpha1.TuningSpec) { t.ArenaMax = new(int32(0)) },
		},
		"processes of one container": {
			base: base, entry: v1alpha1.TuningSpec{Processes: new(int32(4))},
			want: func(t *v1alpha1.TuningSpec) { t.Processes = new(int32(4)) },
		},
		"reserve of one container": {
			base: base, entry: v1alpha1.TuningSpec{Reserve: quantity("32Mi")},
			want: func(t *v1alpha1.TuningSpec) { t.Reserve = quantity("32Mi") },
		},
		"heapLimit replaces heapPercent: the two exclude each other": {
			base: base, entry: v1alpha1.TuningSpec{HeapLimit: quantity("256Mi")},
			want: func(t *v1alpha1.TuningSpec) { t.HeapPercent, t.HeapLimit = nil, quantity("256Mi") },
		},
		"an entry without a mode has the profile's": {
			base: dry, entry: v1alpha1.TuningSpec{ArenaMax: new(int32(4))},
			want: func(t *v1alpha1.TuningSpec) { t.Mode, t.ArenaMax = v1alpha1.TuningDryRun, new(int32(4)) },
		},
		"an entry's mode is that of its container": {
			base: dry, entry: v1alpha1.TuningSpec{Mode: v1alpha1.TuningInject}, want: func(*v1alpha1.TuningSpec) {},
		},
		"an entry turns one container off": {
			base: dry, entry: v1alpha1.TuningSpec{Mode: v1alpha1.TuningDisabled},
			want: func(t *v1alpha1.TuningSpec) { t.Mode = v1alpha1.TuningDisabled },
		},
		"an entry without a conflictPolicy has the profile's, and its names": {
			base: replacing, entry: v1alpha1.TuningSpec{ArenaMax: new(int32(4))},
			want: func(t *v1alpha1.TuningSpec) {
				t.ConflictPolicy, t.Replace = v1alpha1.Replace, []v1alpha1.Setting{"GOMEMLIMIT"}
				t.ArenaMax = new(int32(4))
			},
		},
		"a field of a runtime replaces that field and no other": {
			base: base, entry: v1alpha1.TuningSpec{Go: &v1alpha1.GoTuning{MemoryLimitBy: "AUTOMEMLIMIT"}},
			want: func(t *v1alpha1.TuningSpec) {
				t.Go = &v1alpha1.GoTuning{MemoryLimitBy: "AUTOMEMLIMIT", Cgo: "Used"}
			},
		},
		"an entry that keeps the user's values drops the names to replace": {
			base: replacing, entry: v1alpha1.TuningSpec{ArenaMax: new(int32(4)), ConflictPolicy: v1alpha1.KeepUser},
			want: func(t *v1alpha1.TuningSpec) { t.ArenaMax = new(int32(4)) },
		},
		"an entry that says Replace inherits the names": {
			base: replacing, entry: v1alpha1.TuningSpec{ConflictPolicy: v1alpha1.Replace},
			want: func(t *v1alpha1.TuningSpec) {
				t.ConflictPolicy, t.Replace = v1alpha1.Replace, []v1alpha1.Setting{"GOMEMLIMIT"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := of(
				v1alpha1.MemoryProfileSpec{
					Tuning: tc.base, Containers: []v1alpha1.ContainerPolicy{{Name: "app", Tuning: &tc.entry}},
				},
			).Container("app", nil).Tuning
			want := base
			want.Mode, want.ConflictPolicy = v1alpha1.TuningInject, v1alpha1.KeepUser
			want.ResizePolicy = v1alpha1.ResizeRestartContainer
			tc.want(&want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("tuning (-want +got):\n%s", diff)
			}
		})
	}
}

// TestASidecarGetsNothingThatIsMeantForTheApp: the app's heapPercent or heapLimit would become the proxy's GOMEMLIMIT.
func TestASidecarGetsNothingThatIsMeantForTheApp(t *testing.T) {
	profile := of(v1alpha1.MemoryProfileSpec{
		Tuning: v1alpha1.TuningSpec{
			Mode: v1alpha1.TuningDryRun, HeapLimit: quantity("32Mi"), ArenaMax: new(int32(1)), ConflictPolicy: v1alpha1.Replace,
			Replace: []v1alpha1.Setting{"GOMEMLIMIT"},
		},
		Containers: []v1alpha1.ContainerPolicy{
			{Name: "*", Tuning: &v1alpha1.TuningSpec{HeapPercent: new(int32(20))}},
			{Name: "daprd", Tuning: &v1alpha1.TuningSpec{HeapPercent: new(int32(50))}},
		},
	})
	want := v1alpha1.TuningSpec{
		Mode: v1alpha1.TuningDryRun, ConflictPolicy: v1alpha1.KeepUser, ResizePolicy: v1alpha1.ResizeRestartContainer,
	}
	for _, name := range []string{"istio-proxy", "vault-agent"} {
		if diff := cmp.Diff(want, profile.Container(name, nil).Tuning); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := profile.Container("daprd", nil).Tuning; got.HeapPercent == nil || *got.HeapPercent != 50 {
		t.Errorf("a sidecar that the profile names gets what the profile says for it, not %+v", got)
	}
}

func TestContainerSizingHasEveryDefaultButHeadroom(t *testing.T) {
	spec := v1alpha1.MemoryProfileSpec{
		Sizing:     v1alpha1.SizingSpec{Mode: v1alpha1.SizingOnCreate, Limit: &v1alpha1.Bounds{Max: quantity("4Gi")}},
		Containers: []v1alpha1.ContainerPolicy{{Name: "app", Limit: &v1alpha1.Bounds{Min: quantity("256Mi")}}},
	}
	want := v1alpha1.SizingSpec{
		Mode: v1alpha1.SizingOnCreate, RequestPolicy: v1alpha1.RequestPercentile,
		Posture:  v1alpha1.PostureBalanced,
		Limit:    &v1alpha1.Bounds{Min: quantity("256Mi"), Max: quantity("4Gi")},
		Request:  &v1alpha1.Bounds{Min: quantity("16Mi")},
		Decrease: v1alpha1.DecreaseAllowed, Increase: v1alpha1.IncreaseAllowed,
		Rescue: v1alpha1.RescueDisabled,
		OOM:    &v1alpha1.OOMSpec{FactorPercent: new(int32(150)), MinIncrease: quantity("64Mi")},
		Disruption: &v1alpha1.DisruptionSpec{
			Cooldown: &metav1.Duration{Duration: time.Hour}, MaxUnavailable: new(intstr.FromInt32(1)),
			MinChangePercent: new(int32(10)),
			Watch:            &metav1.Duration{Duration: 10 * time.Minute},
			SingleReplica:    "Never",
		},
	}
	if diff := cmp.Diff(want, of(spec).Container("app", nil).Sizing); diff != "" {
		t.Errorf("sizing of app (-want +got):\n%s", diff)
	}
	want.Limit = &v1alpha1.Bounds{Min: quantity("16Mi"), Max: quantity("4Gi")}
	if diff := cmp.Diff(want, of(spec).Container("other", nil).Sizing); diff != "" {
		t.Errorf("sizing of other (-want +got):\n%s", diff)
	}
	if spec.Sizing.OOM != nil || spec.Sizing.Limit.Min != nil {
		t.Error("filling defaults wrote into the shared spec")
	}
}

// Windows that cannot be read are closed windows, not none: none would be open at any time.
// TestSizePolicy: an empty profile sizes with the defaults, and 0 is a value like any other.
func TestSizePolicy(t *testing.T) {
	want := recommend.Policy{
		HeadroomPercent: 15, MinMarginPercent: 5, KillPrice: recommend.Balanced, LimitMin: 16 * memory.MiB,
		RequestMin: 16 * memory.MiB, OOMFactorPercent: 150, OOMMinIncrease: 64 * memory.MiB, MinChangePercent: 10,
	}
	app := of(v1alpha1.MemoryProfileSpec{}).Container("app", nil)
	if got := app.SizePolicy(); got != want {
		t.Errorf("of an empty profile: %+v, want %+v", got, want)
	}
	app = of(v1alpha1.MemoryProfileSpec{Sizing: v1alpha1.SizingSpec{
		HeadroomPercent: new(int32(0)), Disruption: &v1alpha1.DisruptionSpec{MinChangePercent: new(int32(0))},
	}}).Container("app", nil)
	want.HeadroomPercent, want.MinMarginPercent, want.MinChangePercent = 0, 0, 0
	if got := app.SizePolicy(); got != want {
		t.Errorf("without headroom: %+v, want %+v", got, want)
	}
}

// TestAPostureIsTheNameOfAPriceOrThePrice; one that the API server would refuse is the default.
func TestAPostureIsTheNameOfAPriceOrThePrice(t *testing.T) {
	for posture, want := range map[v1alpha1.SizingPosture]memory.Bytes{
		"Frugal": 3 * memory.GiB, "": 10 * memory.GiB, "Balanced": 10 * memory.GiB, "Cautious": 200 * memory.GiB,
		"20Gi": 20 * memory.GiB, "1.5Gi": 1536 * memory.MiB, "Brave": 10 * memory.GiB, "-5Gi": 10 * memory.GiB,
	} {
		app := of(v1alpha1.MemoryProfileSpec{Sizing: v1alpha1.SizingSpec{Posture: posture}}).Container("app", nil)
		if got := app.SizePolicy().KillPrice; got != want {
			t.Errorf("posture %q: a kill is worth %s, want %s", posture, got, want)
		}
	}
}

func TestAWindowThatCannotBeReadNeverOpens(t *testing.T) {
	windows, wrong := Windows(&v1alpha1.DisruptionSpec{Windows: []v1alpha1.MaintenanceWindow{{Schedule: "at night"}}})
	if open, next := windows.Open(time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC)); open || !next.IsZero() || len(wrong) != 1 {
		t.Errorf("open %v, next at %s, wrong %q", open, next, wrong)
	}
}

func TestInvalidNamesTheField(t *testing.T) {
	for name, tc := range map[string]struct {
		spec v1alpha1.MemoryProfileSpec
		want string
	}{
		"an empty spec": {},
		"everything at once": {
			spec: v1alpha1.MemoryProfileSpec{
				Sizing: v1alpha1.SizingSpec{Mode: v1alpha1.SizingInPlaceOrEvict},
				Drift:  v1alpha1.DriftSpec{Action: v1alpha1.DriftRestart},
			},
		},
		"unreadable selector": {
			spec: v1alpha1.MemoryProfileSpec{Selector: labeled("not a key!", "x")}, want: "spec.selector chooses no pod",
		},
		"a reserve that no limit leaves": {
			spec: v1alpha1.MemoryProfileSpec{
				Tuning: v1alpha1.TuningSpec{Reserve: quantity("1Gi")},
				Sizing: v1alpha1.SizingSpec{Limit: &v1alpha1.Bounds{Max: quantity("1Gi")}},
			},
			want: "spec.tuning.reserve: 1Gi is not below the largest limit of 1Gi (limit.max), which leaves nothing " +
				"for the runtime: lower reserve, or raise limit.max",
		},
		"a reserve below the largest limit": {
			spec: v1alpha1.MemoryProfileSpec{
				Tuning: v1alpha1.TuningSpec{Reserve: quantity("1023Mi")},
				Sizing: v1alpha1.SizingSpec{Limit: &v1alpha1.Bounds{Max: quantity("1Gi")}},
			},
		},
		"a reserve of all, and a container with less": {
			spec: v1alpha1.MemoryProfileSpec{
				Tuning:     v1alpha1.TuningSpec{Reserve: quantity("256Mi")},
				Containers: []v1alpha1.ContainerPolicy{{Name: "api", Limit: &v1alpha1.Bounds{Max: quantity("256Mi")}}},
			},
			want: "spec.containers[api].tuning.reserve: 256Mi is not below the largest limit of 256Mi",
		},
		"heapLimit for a JVM": {
			spec: v1alpha1.MemoryProfileSpec{
				Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM}, Tuning: v1alpha1.TuningSpec{HeapLimit: quantity("512Mi")},
			},
			want: "spec.tuning.heapLimit: 512Mi is not for the JVM",
		},
		"heapLimit for a JVM container": {
			spec: v1alpha1.MemoryProfileSpec{Containers: []v1alpha1.ContainerPolicy{{
				Name: "api", Runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM},
				Tuning: &v1alpha1.TuningSpec{HeapLimit: quantity("512Mi")},
			}}},
			want: "spec.containers[api].tuning.heapLimit: 512Mi is not for the JVM",
		},
		"windows": {
			spec: v1alpha1.MemoryProfileSpec{Sizing: v1alpha1.SizingSpec{Disruption: &v1alpha1.DisruptionSpec{
				Windows: []v1alpha1.MaintenanceWindow{
					{Schedule: "0 2 * * 1-5", Duration: metav1.Duration{Duration: 3 * time.Hour}, TimeZone: "Europe/Berlin"},
				},
			}}},
		},
		"a window that cannot be read": {
			spec: v1alpha1.MemoryProfileSpec{Sizing: v1alpha1.SizingSpec{Disruption: &v1alpha1.DisruptionSpec{
				Windows: []v1alpha1.MaintenanceWindow{
					{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}},
					{Schedule: "at night", Duration: metav1.Duration{Duration: time.Hour}},
				},
			}}},
			want: `spec.sizing.disruption.windows[1].schedule: "at night" is not a CronJob's schedule`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(Invalid(&tc.spec), "\n"); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestOnlyMeasures(t *testing.T) {
	off := v1alpha1.TuningSpec{Mode: v1alpha1.TuningDisabled}
	recommend := v1alpha1.SizingSpec{Mode: v1alpha1.SizingRecommend}
	measures := v1alpha1.MemoryProfileSpec{Tuning: off, Sizing: recommend}
	type spec = v1alpha1.MemoryProfileSpec
	for name, tc := range map[string]struct {
		change func(*spec)
		want   bool
	}{
		"recommends":                    {func(*spec) {}, true},
		"recommends by default":         {func(s *spec) { s.Sizing.Mode = "" }, true},
		"does not size":                 {func(s *spec) { s.Sizing.Mode = v1alpha1.SizingDisabled }, true},
		"injects by default":            {func(s *spec) { s.Tuning.Mode = "" }, false},
		"writes down what it would set": {func(s *spec) { s.Tuning.Mode = v1alpha1.TuningDryRun }, false},
		"sizes new pods":                {func(s *spec) { s.Sizing.Mode = v1alpha1.SizingOnCreate }, false},
		"restarts what drifts":          {func(s *spec) { s.Drift.Action = v1alpha1.DriftRestart }, false},
		"an entry asks for more": {func(s *spec) {
			s.Containers = []v1alpha1.ContainerPolicy{{Name: "app", Tuning: &v1alpha1.TuningSpec{Mode: v1alpha1.TuningInject}}}
		}, false},
		"an entry asks for no more": {func(s *spec) {
			s.Containers = []v1alpha1.ContainerPolicy{{Name: "app", Tuning: &v1alpha1.TuningSpec{ArenaMax: new(int32(1))}}}
		}, true},
		"only an entry asks for nothing": {func(s *spec) {
			s.Tuning.Mode = v1alpha1.TuningInject
			s.Containers = []v1alpha1.ContainerPolicy{{Name: "*", Tuning: &v1alpha1.TuningSpec{Mode: v1alpha1.TuningDisabled}}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			changed := *measures.DeepCopy()
			tc.change(&changed)
			n := of(changed)
			if got := n.OnlyMeasures(); got != tc.want {
				t.Errorf("only measures: %t, want %t", got, tc.want)
			}
			if c := n.Container("app", nil); tc.want && c.Tuning.Mode != v1alpha1.TuningDisabled {
				t.Errorf("it only measures, and container app is tuned: %s", c.Tuning.Mode)
			}
		})
	}
}

// TestDriftHasEveryDefault: what a profile leaves open is the built-in default, and what it sets wins.
func TestDriftHasEveryDefault(t *testing.T) {
	week := &metav1.Duration{Duration: 168 * time.Hour}
	n := &Profile{Spec: &v1alpha1.MemoryProfileSpec{
		Drift:  v1alpha1.DriftSpec{Action: v1alpha1.DriftRestart, Window: week},
		Sizing: v1alpha1.SizingSpec{Disruption: &v1alpha1.DisruptionSpec{Watch: week}},
	}}
	want := v1alpha1.DriftSpec{
		Action: v1alpha1.DriftRestart, Window: week, MaxPerDay: new(int32(3)),
	}
	if diff := cmp.Diff(want, n.Drift()); diff != "" {
		t.Error(diff)
	}
	if d := n.Disruption(); d.Watch != week || d.Cooldown.Duration != time.Hour || d.MaxUnavailable.IntValue() != 1 {
		t.Errorf("got %+v", d)
	}
}
