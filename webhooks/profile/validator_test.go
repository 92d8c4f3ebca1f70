// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/profile"
)

// TestVerdict: what the schema lets through and cannot be meant is refused with what to write instead.
func TestVerdict(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		// want are words of the refusal; none: the profile is taken.
		want []string
		// warns are words of the warnings.
		warns []string
	}{
		"an empty profile": {spec: `{}`},
		"a sensible one": {
			spec: `{selector: {matchLabels: {app: web}}, runtime: {type: NodeJS, version: "20"}, sizing: {limit: {min: 64Mi, max: 4Gi}}}`,
		},
		"a label that cannot be": {
			spec: `{selector: {matchLabels: {app: "no spaces"}}}`, want: []string{"spec.selector.matchLabels", "no spaces"},
		},
		"an operator without values": {
			spec: `{selector: {matchExpressions: [{key: app, operator: In}]}}`, want: []string{"matchExpressions[0].values"},
		},
		"an operator nobody knows": {
			spec: `{selector: {matchExpressions: [{key: app, operator: Is, values: [web]}]}}`,
			want: []string{"matchExpressions[0].operator", "Is"},
		},
		"a request no limit can hold": {
			spec: `{sizing: {limit: {max: 1Gi}, request: {min: 2Gi}}}`,
			want: []string{"sizing.request.min 2Gi", "sizing.limit.max 1Gi", "lower the first"},
		},
		"the same for one container": {
			spec: `{sizing: {limit: {max: 1Gi}}, containers: [{name: app, request: {min: 2Gi}}]}`,
			want: []string{"sizing.request.min 2Gi (MemoryProfile web, containers[app])"},
		},
		"a container with other bounds": {
			spec: `{sizing: {limit: {max: 1Gi}}, containers: [{name: app, limit: {max: 4Gi}, request: {min: 2Gi}}]}`,
		},
		"half a millisecond": {
			spec: `{tuning: {trimInterval: 1000500us}}`, want: []string{"spec.tuning.trimInterval", "whole milliseconds"},
		},
		"a heap size for the JVM": {
			spec: `{runtime: {type: JVM}, tuning: {heapLimit: 256Mi}}`, want: []string{"heapLimit", "heapPercent"},
		},
		"resizing in place": {spec: `{sizing: {mode: InPlace}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var spec v1alpha1.MemoryProfileSpec
			if err := yaml.UnmarshalStrict([]byte(tc.spec), &spec); err != nil {
				t.Fatal(err)
			}
			v := validator{indexed(nil), profile.KindNamespaced}
			warnings, err := v.created(named("", "web", spec))
			if (err != nil) != (len(tc.want) > 0) {
				t.Fatalf("refused with %v, want words %q", err, tc.want)
			}
			for _, word := range tc.want {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %q", err, word)
				}
			}
			all := strings.Join(warnings, "\n")
			if all != "" && len(tc.warns) == 0 {
				t.Errorf("warned of %q, want nothing", all)
			}
			for _, word := range tc.warns {
				if !strings.Contains(all, word) {
					t.Errorf("warnings %q do not say %q", all, word)
				}
			}
		})
	}
}

// named is a profile of either kind.
func named(namespace, name string, spec v1alpha1.MemoryProfileSpec) *v1alpha1.ClusterMemoryProfile {
	return &v1alpha1.ClusterMemoryProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.ClusterMemoryProfileSpec{MemoryProfileSpec: spec},
	}
}

func (v validator) created(p *v1alpha1.ClusterMemoryProfile) ([]string, error) {
	warnings, errs := v.validate(nil, p)
	return warnings, errs.ToAggregate()
}

func (v validator) updated(old, p *v1alpha1.ClusterMemoryProfile) ([]string, error) {
	warnings, errs := v.validate(&old.Spec.MemoryProfileSpec, p)
	return warnings, errs.ToAggregate()
}

type known struct{ index *profile.Index }

func (k known) Profiles() *profile.Index { return k.index }

func indexed(profiles []profile.Profile) IndexSource { return known{profile.NewIndex(profiles)} }

// TestInheritance: a second profile with role Defaults is refused where it is made, and nobody else is for what another
// one says: in which order the two are applied is not theirs to know.
func TestInheritance(t *testing.T) {
	bounds := func(low, high string) v1alpha1.SizingSpec {
		b := &v1alpha1.Bounds{}
		if low != "" {
			b.Min = v1alpha1.NewMemoryQuantity(resource.MustParse(low))
		}
		if high != "" {
			b.Max = v1alpha1.NewMemoryQuantity(resource.MustParse(high))
		}
		return v1alpha1.SizingSpec{Limit: b}
	}
	base := v1alpha1.MemoryProfileSpec{Role: v1alpha1.RoleDefaults, Sizing: bounds("", "1Gi")}
	v := validator{indexed([]profile.Profile{{
		Ref: v1alpha1.ProfileReference{Kind: profile.KindNamespaced, Name: "base"}, Namespace: "shop", Spec: &base,
	}}), profile.KindNamespaced}
	if _, err := v.created(named("shop", "other", base)); err == nil ||
		!strings.Contains(err.Error(), "MemoryProfile shop/base already has role: Defaults") {
		t.Errorf("a second one: %v", err)
	}
	plain := named("shop", "web", v1alpha1.MemoryProfileSpec{})
	if _, err := v.updated(plain, named("shop", "web", base)); err == nil {
		t.Error("a profile that becomes a second one is taken")
	}
	edited := named("shop", "other", base)
	for what, err := range map[string]error{
		"the same one":             second(v.created(named("shop", "base", base))),
		"one of another namespace": second(v.created(named("other", "base", base))),
		"an edit of one of two":    second(v.updated(edited, edited)),
	} {
		if err != nil {
			t.Errorf("%s is refused: %v", what, err)
		}
	}
	plain.Spec.Sizing = bounds("2Gi", "")
	warnings, err := v.created(plain)
	if err != nil || len(warnings) != 1 ||
		!strings.Contains(warnings[0], "limit.max 1Gi (MemoryProfile shop/base (defaults))") {
		t.Errorf("a bound that clashes: warnings %q, error %v", warnings, err)
	}
}

func second(_ []string, err error) error { return err }

func TestAProfileForTheWholeClusterIsPointedOut(t *testing.T) {
	v := validator{indexed(nil), profile.KindCluster}
	everything := named("", "all", v1alpha1.MemoryProfileSpec{Selector: &metav1.LabelSelector{}})
	warnings, err := v.created(everything)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "every pod") {
		t.Errorf("got %q, %v; want one warning and no refusal", warnings, err)
	}
	everything.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
	warnings, err = v.created(everything)
	if err != nil || len(warnings) != 0 {
		t.Errorf("for some namespaces: got %q, %v; want no warning and no refusal", warnings, err)
	}
	everything.Spec.NamespaceSelector.MatchLabels["team"] = "not a label value"
	if _, err = v.created(everything); err == nil ||
		!strings.Contains(err.Error(), "spec.namespaceSelector.matchLabels") {
		t.Errorf("an invalid namespaceSelector: %v", err)
	}
}
