// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/runtimes"
)

// builtin returns the API's defaults. Its durations are periods of evidence; the durations in a profile are real time.
func builtin() *v1alpha1.MemoryProfileSpec {
	return &v1alpha1.MemoryProfileSpec{
		Tuning: v1alpha1.TuningSpec{
			Mode: v1alpha1.TuningInject, ConflictPolicy: v1alpha1.KeepUser, ResizePolicy: v1alpha1.ResizeRestartContainer,
		},
		Sizing: v1alpha1.SizingSpec{
			Mode: v1alpha1.SizingRecommend, RequestPolicy: v1alpha1.RequestPercentile,
			Posture:  v1alpha1.PostureBalanced,
			Limit:    &v1alpha1.Bounds{Min: v1alpha1.NewMemoryQuantity(resource.MustParse("16Mi"))},
			Request:  &v1alpha1.Bounds{Min: v1alpha1.NewMemoryQuantity(resource.MustParse("16Mi"))},
			Decrease: v1alpha1.DecreaseAllowed, Increase: v1alpha1.IncreaseAllowed,
			Rescue: v1alpha1.RescueDisabled,
			OOM: &v1alpha1.OOMSpec{
				FactorPercent: new(int32(150)), MinIncrease: v1alpha1.NewMemoryQuantity(resource.MustParse("64Mi")),
			},
			Disruption: &v1alpha1.DisruptionSpec{
				Cooldown:       &metav1.Duration{Duration: period.Hour.Duration()},
				Watch:          &metav1.Duration{Duration: (10 * period.Minute).Duration()},
				MaxUnavailable: new(intstr.FromInt32(1)), MinChangePercent: new(int32(10)),
				SingleReplica: "Never",
			},
		},
		Drift: v1alpha1.DriftSpec{
			Window:    &metav1.Duration{Duration: period.Day.Duration()},
			MaxPerDay: new(int32(3)),
		},
	}
}

// policy is the effective policy of one container; drift is common to all.
type policy struct {
	tuning v1alpha1.TuningSpec
	sizing v1alpha1.SizingSpec
	drift  v1alpha1.DriftSpec
}

// Disruption returns the effective policy for changes of running pods. It is shared: do not change it.
func (n *Profile) Disruption() *v1alpha1.DisruptionSpec { return n.policyFor(nil).sizing.Disruption }

// Identity returns the keys of the labels that identify pods whose owner does not outlive them; empty: none.
func (n *Profile) Identity() []string {
	if n == nil || n.Spec.Identity == nil {
		return nil
	}
	var keys []string
	for _, key := range n.Spec.Identity.Labels {
		keys = append(keys, string(key))
	}
	return keys
}

// NodeClass returns the key of the node label that divides DaemonSets into classes; empty: no classes.
func (n *Profile) NodeClass() string {
	if n == nil || n.Spec.Identity == nil {
		return ""
	}
	return string(n.Spec.Identity.NodeClass)
}

// Drift returns the effective policy for drift. Its pointers are shared: do not change their values.
func (n *Profile) Drift() v1alpha1.DriftSpec { return n.policyFor(nil).drift }

// policyFor returns the effective policy of a container with that entry; nil: no entry.
func (n *Profile) policyFor(entry *v1alpha1.ContainerPolicy) policy {
	name := ""
	if entry != nil {
		name = entry.Name
	}
	if p, merged := n.effective[name]; merged && n.mergedFrom == n.Spec {
		return p
	}
	spec := under(stated(n.Spec, entry), builtin())
	return policy{spec.Tuning, spec.Sizing, spec.Drift}
}

// mergeContainers fills n.effective in advance, so that pods need no merge.
func (n *Profile) mergeContainers() {
	n.effective = nil
	all := map[string]policy{"": n.policyFor(nil)}
	for i := range n.Spec.Containers {
		all[n.Spec.Containers[i].Name] = n.policyFor(&n.Spec.Containers[i])
	}
	n.effective, n.mergedFrom = all, n.Spec
}

// stated returns the profile, overridden by a container's entry, without built-in defaults.
func stated(spec *v1alpha1.MemoryProfileSpec, entry *v1alpha1.ContainerPolicy) v1alpha1.MemoryProfileSpec {
	if entry == nil {
		return *spec
	}
	return under(v1alpha1.MemoryProfileSpec{
		Runtime: *orPointer(entry.Runtime, &spec.Runtime),
		Tuning:  *orPointer(entry.Tuning, &v1alpha1.TuningSpec{}),
		Sizing:  v1alpha1.SizingSpec{Limit: entry.Limit, Request: entry.Request},
	}, spec)
}

// under merges spec over defaults, field by field, without changing either. It drops defaults that do not fit settings
// of spec. All levels use it: container, profile, defaults of the namespace and of the cluster, built-in.
func under(spec v1alpha1.MemoryProfileSpec, defaults *v1alpha1.MemoryProfileSpec) v1alpha1.MemoryProfileSpec {
	given := defaults.Tuning
	if spec.Tuning.HeapPercent != nil || spec.Tuning.HeapLimit != nil { // the two exclude each other
		given.HeapPercent, given.HeapLimit = nil, nil
	}
	if runtimes.Lookup(string(spec.Runtime.Type)).NoHeapLimit != "" { // defaults may be for other runtimes
		given.HeapLimit = nil
	}
	if spec.Tuning.ConflictPolicy == v1alpha1.KeepUser { // replace belongs to conflictPolicy: Replace
		given.Replace = nil
	}
	spec.Tuning = fillUnset(spec.Tuning, given)
	spec.Sizing = fillUnset(spec.Sizing, defaults.Sizing)
	spec.Drift = fillUnset(spec.Drift, defaults.Drift)
	type identity struct{ Of *v1alpha1.IdentitySpec }
	spec.Identity = fillUnset(identity{spec.Identity}, identity{defaults.Identity}).Of
	return spec
}

// fillUnset sets the unset fields of value from defaults, by reflection: call it when profiles change, not per pod.
func fillUnset[T any](value, defaults T) T {
	fill(reflect.ValueOf(&value).Elem(), reflect.ValueOf(defaults))
	return value
}

func fill(value, defaults reflect.Value) {
	for i := range value.NumField() {
		own, given := value.Field(i), defaults.Field(i)
		switch {
		case given.IsZero():
		case own.IsZero():
			own.Set(given)
		case group(own.Type()): // a struct of the API: merge a copy, because the original is shared
			both := reflect.New(own.Type().Elem())
			both.Elem().Set(own.Elem())
			fill(both.Elem(), given.Elem())
			own.Set(both)
		}
	}
}

// group reports whether t is a pointer to a struct with fields of the API, not to a value such as a quantity.
func group(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == reflect.TypeFor[v1alpha1.Bounds]().PkgPath() &&
		t != reflect.TypeFor[*v1alpha1.MemoryQuantity]()
}

func orPointer[T any](value, fallback *T) *T {
	if value == nil {
		return fallback
	}
	return value
}
