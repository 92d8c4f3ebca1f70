// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/memfit/memfit/api/v1alpha1"
)

// scope is a profile of a namespace ("shop/web") or of the cluster ("web"); its age is in hours.
func scope(name string, age int, spec v1alpha1.MemoryProfileSpec) Profile {
	n := Profile{
		Ref: v1alpha1.ProfileReference{Kind: KindCluster, Name: name}, Generation: 1, Spec: &spec,
		Created: time.Date(2026, 11, 24, 12-age, 0, 0, 0, time.UTC),
	}
	if namespace, own, found := strings.Cut(name, "/"); found {
		n.Ref, n.Namespace = v1alpha1.ProfileReference{Kind: KindNamespaced, Name: own}, namespace
	}
	return n
}

func giving(spec v1alpha1.MemoryProfileSpec) v1alpha1.MemoryProfileSpec {
	spec.Role = v1alpha1.RoleDefaults
	return spec
}

// setter gives one field of a spec a value, the n-th of several.
type setter func(spec reflect.Value, n int)

// leafPaths are the setters of every field of the API below a struct that reach finds in a spec, by path.
func leafPaths(
	t *testing.T, of reflect.Type, path string, reach func(root reflect.Value) reflect.Value,
) map[string]setter {
	t.Helper()
	set := map[string]setter{}
	for i := range of.NumField() {
		field, at := of.Field(i), path+"."+of.Field(i).Name
		here := func(root reflect.Value) reflect.Value { return reach(root).Field(i) }
		switch {
		case group(field.Type):
			inside := leafPaths(t, field.Type.Elem(), at, func(root reflect.Value) reflect.Value {
				if p := here(root); p.IsNil() {
					p.Set(reflect.New(field.Type.Elem()))
				}
				return here(root).Elem()
			})
			maps.Copy(set, inside)
		default:
			set[at] = func(root reflect.Value, n int) { here(root).Set(sample(t, field.Type, n)) }
		}
	}
	return set
}

func sample(t *testing.T, of reflect.Type, n int) reflect.Value {
	t.Helper()
	v := reflect.New(of).Elem()
	switch of {
	case reflect.TypeFor[*v1alpha1.MemoryQuantity]():
		return reflect.ValueOf(v1alpha1.NewMemoryQuantity(*resource.NewQuantity(int64(n)<<20, resource.BinarySI)))
	case reflect.TypeFor[*metav1.Duration]():
		return reflect.ValueOf(&metav1.Duration{Duration: time.Duration(n) * time.Minute})
	case reflect.TypeFor[*intstr.IntOrString]():
		return reflect.ValueOf(new(intstr.FromInt(n)))
	case reflect.TypeFor[[]v1alpha1.MaintenanceWindow]():
		return reflect.ValueOf([]v1alpha1.MaintenanceWindow{{Schedule: fmt.Sprintf("%d 2 * * *", n)}})
	}
	switch of.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("said-%d", n))
	case reflect.Slice:
		v.Set(reflect.Append(v, sample(t, of.Elem(), n)))
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
		v.Elem().Set(sample(t, of.Elem(), n))
	case reflect.Int32:
		v.SetInt(int64(n))
	default:
		t.Fatalf("no field was a %s before: say here what it may hold, and in open how it is inherited", of)
	}
	return v
}

// TestEveryFieldIsInherited: a field of the API that somebody adds is inherited, too, and the nearest who says anything
// has the word.
func TestEveryFieldIsInherited(t *testing.T) {
	all := map[string]setter{}
	for section, of := range map[string]reflect.Type{
		"Tuning": reflect.TypeFor[v1alpha1.TuningSpec](), "Sizing": reflect.TypeFor[v1alpha1.SizingSpec](),
		"Drift": reflect.TypeFor[v1alpha1.DriftSpec](),
	} {
		maps.Copy(all, leafPaths(t, of, section, func(root reflect.Value) reflect.Value {
			return root.FieldByName(section)
		}))
	}
	if len(all) < 40 {
		t.Fatalf("%d fields were found, so that not all were looked at", len(all))
	}
	saying := func(path string, n int) v1alpha1.MemoryProfileSpec {
		var spec v1alpha1.MemoryProfileSpec
		all[path](reflect.ValueOf(&spec).Elem(), n)
		return spec
	}
	for path := range all {
		for what, tc := range map[string]struct{ cluster, namespace, own, want int }{
			"of the cluster":   {1, 0, 0, 1},
			"of the namespace": {1, 2, 0, 2},
			"its own":          {1, 2, 3, 3},
			"nobody's":         {0, 0, 0, 0},
		} {
			var specs [4]v1alpha1.MemoryProfileSpec
			for i, n := range []int{tc.cluster, tc.namespace, tc.own, tc.want} {
				if n > 0 {
					specs[i] = saying(path, n)
				}
			}
			before := [2]*v1alpha1.MemoryProfileSpec{specs[0].DeepCopy(), specs[2].DeepCopy()}
			profiles := []Profile{
				scope("base", 2, giving(specs[0])), scope("shop/base", 1, giving(specs[1])), scope("shop/web", 0, specs[2]),
			}
			NewIndex(profiles)
			if diff := cmp.Diff(specs[3], *profiles[2].Spec); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", path, what, diff)
			}
			before[0].Role = v1alpha1.RoleDefaults
			if diff := cmp.Diff(before[0], profiles[0].Spec) + cmp.Diff(before[1], profiles[2].Declared()); diff != "" {
				t.Errorf("%s, %s: what is shared was written to:\n%s", path, what, diff)
			}
		}
	}
}

func TestInheritance(t *testing.T) {
	percent, heap := func(n int32) *int32 { return &n }, quantity("256Mi")
	for what, tc := range map[string]struct {
		cluster, namespace *v1alpha1.MemoryProfileSpec
		name               string
		own, want          v1alpha1.MemoryProfileSpec
	}{
		"bounds, each for itself": {
			cluster: &v1alpha1.MemoryProfileSpec{
				Sizing: v1alpha1.SizingSpec{Limit: &v1alpha1.Bounds{Min: quantity("64Mi"), Max: quantity("4Gi")}},
			},
			namespace: &v1alpha1.MemoryProfileSpec{Sizing: v1alpha1.SizingSpec{Limit: &v1alpha1.Bounds{Max: quantity("2Gi")}}},
			name:      "shop/web",
			want: v1alpha1.MemoryProfileSpec{
				Sizing: v1alpha1.SizingSpec{Limit: &v1alpha1.Bounds{Min: quantity("64Mi"), Max: quantity("2Gi")}},
			},
		},
		"a share of the heap drops an inherited size of it": {
			cluster: &v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{HeapLimit: heap}}, name: "shop/web",
			own:  v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{HeapPercent: percent(60)}},
			want: v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{HeapPercent: percent(60)}},
		},
		"the nearer one's share drops the farther one's size": {
			cluster:   &v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{HeapLimit: heap}},
			namespace: &v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{HeapPercent: percent(60)}}, name: "shop/web",
			want: v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{HeapPercent: percent(60)}},
		},
		"a JVM takes no size of its heap, and the share of whoever is farther": {
			cluster:   &v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{HeapPercent: percent(60)}},
			namespace: &v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{HeapLimit: heap}}, name: "shop/web",
			own: v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM}},
			want: v1alpha1.MemoryProfileSpec{
				Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM},
				Tuning:  v1alpha1.TuningSpec{HeapPercent: percent(60)},
			},
		},
		"who keeps the user's settings replaces none": {
			cluster: &v1alpha1.MemoryProfileSpec{
				Tuning: v1alpha1.TuningSpec{ConflictPolicy: v1alpha1.Replace, Replace: []v1alpha1.Setting{"GOMEMLIMIT"}},
			},
			name: "shop/web",
			own:  v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{ConflictPolicy: v1alpha1.KeepUser}},
			want: v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{ConflictPolicy: v1alpha1.KeepUser}},
		},
		"a mode, less careful than the cluster's": {
			cluster: &v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{Mode: v1alpha1.TuningDryRun}}, name: "shop/web",
			own:  v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{Mode: v1alpha1.TuningInject}},
			want: v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{Mode: v1alpha1.TuningInject}},
		},
		"of another namespace, nothing": {
			namespace: &v1alpha1.MemoryProfileSpec{Drift: v1alpha1.DriftSpec{MaxPerDay: percent(9)}}, name: "other/web",
		},
		"a profile of the cluster, nothing of a namespace": {
			cluster:   &v1alpha1.MemoryProfileSpec{Drift: v1alpha1.DriftSpec{MaxPerDay: percent(2)}},
			namespace: &v1alpha1.MemoryProfileSpec{Drift: v1alpha1.DriftSpec{MaxPerDay: percent(9)}}, name: "web",
			want: v1alpha1.MemoryProfileSpec{Drift: v1alpha1.DriftSpec{MaxPerDay: percent(2)}},
		},
	} {
		profiles := []Profile{scope(tc.name, 0, tc.own)}
		if tc.cluster != nil {
			profiles = append(profiles, scope("base", 0, giving(*tc.cluster)))
		}
		if tc.namespace != nil {
			profiles = append(profiles, scope("shop/base", 0, giving(*tc.namespace)))
		}
		index := NewIndex(profiles)
		n := index.Get(profiles[0].Key())
		if diff := cmp.Diff(tc.want, *n.Spec); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		if len(n.Clashes()) > 0 {
			t.Errorf("%s: contradictions %q", what, n.Clashes())
		}
		if again := index.Inheriting(scope(tc.name, 0, tc.own)); !cmp.Equal(again.Spec, n.Spec) {
			t.Errorf("%s: asked for alone, it would be another", what)
		}
	}
}

// TestClashes: bounds that nobody wrote side by side are found, with who said each, and no size is changed by a profile
// of which nobody knows what is meant. Its settings go on.
func TestClashes(t *testing.T) {
	limit := func(lowest, highest string) *v1alpha1.Bounds {
		b := &v1alpha1.Bounds{}
		if lowest != "" {
			b.Min = quantity(lowest)
		}
		if highest != "" {
			b.Max = quantity(highest)
		}
		return b
	}
	sizes := func(s v1alpha1.SizingSpec) v1alpha1.MemoryProfileSpec { return v1alpha1.MemoryProfileSpec{Sizing: s} }
	inPlace := func(s v1alpha1.SizingSpec) v1alpha1.MemoryProfileSpec {
		s.Mode = v1alpha1.SizingInPlace
		return sizes(s)
	}
	withEntry := func(spec v1alpha1.MemoryProfileSpec, e v1alpha1.ContainerPolicy) v1alpha1.MemoryProfileSpec {
		spec.Containers = []v1alpha1.ContainerPolicy{e}
		return spec
	}
	for what, tc := range map[string]struct {
		cluster, own v1alpha1.MemoryProfileSpec
		words        []string
	}{
		"limit.min above an inherited limit.max": {
			sizes(v1alpha1.SizingSpec{Limit: limit("", "1Gi")}), inPlace(v1alpha1.SizingSpec{Limit: limit("2Gi", "")}),
			[]string{"limit.min 2Gi (MemoryProfile shop/web)", "limit.max 1Gi (ClusterMemoryProfile base (defaults))"},
		},
		"an inherited request.min above limit.max": {
			sizes(v1alpha1.SizingSpec{Request: limit("2Gi", "")}), inPlace(v1alpha1.SizingSpec{Limit: limit("", "1Gi")}),
			[]string{"request.min 2Gi (ClusterMemoryProfile base (defaults))", "limit.max 1Gi (MemoryProfile shop/web)"},
		},
		"the same for one container": {
			sizes(v1alpha1.SizingSpec{Limit: limit("", "1Gi")}),
			withEntry(inPlace(v1alpha1.SizingSpec{}), v1alpha1.ContainerPolicy{Name: "db", Request: limit("2Gi", "")}),
			[]string{"request.min 2Gi (MemoryProfile shop/web, containers[db])"},
		},
		"raises after a kill that could never end": {
			sizes(v1alpha1.SizingSpec{Increase: v1alpha1.IncreaseAfterKill, Decrease: v1alpha1.DecreaseNever}),
			inPlace(v1alpha1.SizingSpec{Decrease: v1alpha1.DecreaseAllowed}),
			[]string{"AfterKill (ClusterMemoryProfile base (defaults))", "Allowed (MemoryProfile shop/web)"},
		},
		"a reserve that takes all": {
			v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{Reserve: quantity("1Gi")}},
			inPlace(v1alpha1.SizingSpec{Limit: limit("", "512Mi")}),
			[]string{"reserve: 1Gi", "with what it inherits from ClusterMemoryProfile base"},
		},
		"none": {
			sizes(v1alpha1.SizingSpec{Limit: limit("64Mi", "")}), inPlace(v1alpha1.SizingSpec{Limit: limit("", "1Gi")}), nil,
		},
		"an entry's limit.min above an inherited limit.max": {
			sizes(v1alpha1.SizingSpec{Limit: limit("", "1Gi")}),
			withEntry(inPlace(v1alpha1.SizingSpec{}), v1alpha1.ContainerPolicy{Name: "db", Limit: limit("2Gi", "")}),
			[]string{"limit.min 2Gi (MemoryProfile shop/web, containers[db])"},
		},
		"an entry's limit.min above the profile's own limit.max": {
			sizes(v1alpha1.SizingSpec{}),
			withEntry(
				inPlace(v1alpha1.SizingSpec{Limit: limit("", "1Gi")}),
				v1alpha1.ContainerPolicy{Name: "db", Limit: limit("2Gi", "")},
			),
			[]string{"limit.min 2Gi (MemoryProfile shop/web, containers[db])", "limit.max 1Gi (MemoryProfile shop/web)"},
		},
		"none, because the entry sets both bounds": {
			sizes(v1alpha1.SizingSpec{Limit: limit("", "1Gi")}),
			withEntry(inPlace(v1alpha1.SizingSpec{}), v1alpha1.ContainerPolicy{Name: "db", Limit: limit("2Gi", "4Gi")}), nil,
		},
	} {
		profiles := []Profile{scope("base", 0, giving(tc.cluster)), scope("shop/web", 0, tc.own)}
		NewIndex(profiles)
		n := &profiles[1]
		want := v1alpha1.SizingInPlace
		if tc.words != nil {
			want = v1alpha1.SizingRecommend
		}
		if len(n.Clashes()) > 1 || (len(n.Clashes()) == 1) != (tc.words != nil) || n.Spec.Sizing.Mode != want {
			t.Errorf("%s: mode %s, contradictions %q", what, n.Spec.Sizing.Mode, n.Clashes())
			continue
		}
		for _, word := range tc.words {
			if !strings.Contains(n.Clashes()[0], word) {
				t.Errorf("%s: %q does not say %q", what, n.Clashes()[0], word)
			}
		}
		if held := slices.Contains(n.Values("app"), Value{"sizing.mode", "Recommend", FromClash}); held != (tc.words != nil) {
			t.Errorf("%s: explain says that the mode waits: %v", what, held)
		}
	}
}

// TestTwoDefaults: the older one counts, in whatever order they are read, and a second one changes nothing.
func TestTwoDefaults(t *testing.T) {
	days := func(n int32) v1alpha1.MemoryProfileSpec {
		return v1alpha1.MemoryProfileSpec{Drift: v1alpha1.DriftSpec{MaxPerDay: &n}}
	}
	for what, profiles := range map[string][]Profile{
		"by age":  {scope("shop/web", 0, days(0)), scope("shop/b", 2, giving(days(2))), scope("shop/a", 1, giving(days(1)))},
		"by name": {scope("shop/web", 0, days(0)), scope("shop/c", 2, giving(days(1))), scope("shop/b", 2, giving(days(2)))},
	} {
		profiles[0].Spec.Drift.MaxPerDay = nil
		for range 2 {
			index := NewIndex(slices.Clone(profiles))
			d, n := index.Defaults("shop"), index.Find("shop", "web")
			if d.Ref.Name != "b" || *n.Spec.Drift.MaxPerDay != 2 || index.Heirs(d) != 1 {
				t.Errorf("%s: %s counts, %d heirs, of which one says %d", what, d, index.Heirs(d), *n.Spec.Drift.MaxPerDay)
			}
			slices.Reverse(profiles)
		}
	}
	if (*Index)(nil).Defaults("shop") != nil || NewIndex(nil).Defaults("") != nil {
		t.Error("defaults of nobody")
	}
}

// TestDefaultsGovernNothing: neither by a selector that an API server from before the rule let through, nor by name.
func TestDefaultsGovernNothing(t *testing.T) {
	spec := giving(v1alpha1.MemoryProfileSpec{Selector: &metav1.LabelSelector{}})
	index := NewIndex([]Profile{scope("shop/base", 0, spec), scope("base", 0, spec)})
	d := index.Match(Subject{Namespace: "shop", PodLabels: map[string]string{"app": "web"}})
	if d.Profile != nil || d.Problem != "" {
		t.Errorf("chose a pod: %+v", d)
	}
	d = index.Match(Subject{Namespace: "shop", PodAnnotations: map[string]string{v1alpha1.ProfileAnnotation: "base"}})
	if d.Profile != nil || d.Problem != NotFound ||
		!strings.Contains(d.Why, "MemoryProfile shop/base, which governs no pod") {
		t.Errorf("by name: %+v", d)
	}
}

// TestInheritedTellsApart what answers for pods were made of, so that none outlives what it was made of.
func TestInheritedTellsApart(t *testing.T) {
	web := scope("shop/web", 0, v1alpha1.MemoryProfileSpec{})
	of := func(edit func(*Profile), defaults ...Profile) string {
		all := append(slices.Clone(defaults), web)
		if edit != nil {
			edit(&all[0])
		}
		NewIndex(all)
		return all[len(all)-1].Inherited()
	}
	base := scope("base", 0, giving(v1alpha1.MemoryProfileSpec{}))
	seen := map[string]string{}
	for what, text := range map[string]string{
		"nothing": of(nil), "the cluster's": of(nil, base),
		"an edited one":   of(func(n *Profile) { n.Generation = 2 }, base),
		"a new one":       of(func(n *Profile) { n.UID = "2" }, base),
		"the namespace's": of(nil, scope("shop/base", 0, giving(v1alpha1.MemoryProfileSpec{}))),
		"both":            of(nil, base, scope("shop/base", 0, giving(v1alpha1.MemoryProfileSpec{}))),
	} {
		if other, found := seen[text]; found {
			t.Errorf("%s is taken for %s: %q", what, other, text)
		}
		seen[text] = what
	}
	if once, again := of(nil, base), of(nil, base); of(nil) != "" || once != again {
		t.Error("the same is told apart")
	}
}

// TestValuesOfLayers: explain names the layer of each value.
func TestValuesOfLayers(t *testing.T) {
	profiles := []Profile{
		scope("base", 0, giving(v1alpha1.MemoryProfileSpec{
			Sizing: v1alpha1.SizingSpec{Posture: "20Gi", Limit: &v1alpha1.Bounds{Max: quantity("4Gi")}},
			Tuning: v1alpha1.TuningSpec{ArenaMax: new(int32(2))},
		})),
		scope("shop/team", 0, giving(v1alpha1.MemoryProfileSpec{
			Sizing: v1alpha1.SizingSpec{Limit: &v1alpha1.Bounds{Max: quantity("2Gi")}},
			Drift:  v1alpha1.DriftSpec{Action: v1alpha1.DriftRestart},
		})),
		scope("shop/web", 0, v1alpha1.MemoryProfileSpec{
			Sizing:     v1alpha1.SizingSpec{HeadroomPercent: new(int32(15))},
			Containers: []v1alpha1.ContainerPolicy{{Name: "app", Tuning: &v1alpha1.TuningSpec{ArenaMax: new(int32(4))}}},
		}),
	}
	NewIndex(profiles)
	got := map[string]Value{}
	for _, v := range profiles[2].Values("app") {
		got[v.Field] = v
	}
	for _, want := range []Value{
		{"sizing.mode", "Recommend", "default"},
		{"sizing.posture", "20Gi", "ClusterMemoryProfile base (defaults)"},
		{"sizing.limit.max", "2Gi", "MemoryProfile shop/team (defaults)"},
		{"sizing.headroomPercent", "15", "MemoryProfile shop/web"}, // what is the default anyway, but it was said
		{"drift.action", "Restart", "MemoryProfile shop/team (defaults)"},
		{"tuning.arenaMax", "4", "MemoryProfile shop/web, containers[app]"},
	} {
		if got[want.Field] != want {
			t.Errorf("got %+v, want %+v", got[want.Field], want)
		}
	}
}
