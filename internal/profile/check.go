// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/runtimes"
)

// Invalid returns the errors of spec that the API's own rules cannot detect, each with what to change.
func Invalid(spec *v1alpha1.MemoryProfileSpec) []string {
	var out []string
	if _, err := metav1.LabelSelectorAsSelector(spec.Selector); err != nil { // nil also returns a selector
		out = append(out, fmt.Sprintf("spec.selector chooses no pod, because it is invalid (%v): correct it, or remove it "+
			"and use the %s annotation", err, v1alpha1.ProfileAnnotation))
	}
	_, wrong := Windows(spec.Sizing.Disruption)
	return append(append(out, wrong...), ineffective(spec)...)
}

// Invalid returns the errors in the profile's own spec, including its namespaceSelector.
func (n *Profile) Invalid() []string {
	out := Invalid(n.Declared())
	if _, err := metav1.LabelSelectorAsSelector(n.NamespaceSelector); err != nil {
		out = append(out, fmt.Sprintf("spec.namespaceSelector chooses no namespace, because it is invalid (%v): correct it, "+
			"or remove it to choose every namespace", err))
	}
	return out
}

// Validate returns the errors of the profile by itself that the API's own rules cannot detect. The webhook calls it,
// and commands that read profiles from files.
func (n *Profile) Validate() field.ErrorList {
	spec, root := n.Declared(), field.NewPath("spec")
	errs := append(validateSelector(spec.Selector, root.Child("selector")),
		validateSelector(n.NamespaceSelector, root.Child("namespaceSelector"))...)
	if len(errs) == 0 { // Invalid reports an unreadable selector too, with less detail
		for _, text := range Invalid(spec) {
			errs = append(errs, field.Forbidden(root, text))
		}
	}
	for _, text := range (*Index)(nil).Inheriting(*n).Clashes() { // of its own settings
		errs = append(errs, field.Forbidden(root, text))
	}
	errs = append(errs, validateTuning(root.Child("tuning"), &spec.Tuning)...)
	for i := range spec.Containers {
		if c := &spec.Containers[i]; c.Tuning != nil {
			errs = append(errs, validateTuning(root.Child("containers").Key(c.Name).Child("tuning"), c.Tuning)...)
		}
	}
	return errs
}

func validateSelector(s *metav1.LabelSelector, at *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at)
}

// validateTuning returns an error for an interval that the JVM's unit cannot express; the schema has the bounds.
func validateTuning(at *field.Path, t *v1alpha1.TuningSpec) field.ErrorList {
	d := t.TrimInterval
	if d == nil || d.Milliseconds()*1e6 == d.Nanoseconds() {
		return nil
	}
	return field.ErrorList{field.Invalid(at.Child("trimInterval"), d.Duration.String(),
		"must be whole milliseconds, the JVM's unit: for example 30s")}
}

// ineffective returns the settings of spec that other settings make ineffective, each with what to change.
func ineffective(spec *v1alpha1.MemoryProfileSpec) []string {
	var out []string
	add := func(at, text string) {
		if text != "" {
			out = append(out, at+".tuning."+text)
		}
	}
	add("spec", heapLimitRefused(spec.Runtime, spec.Tuning))
	add("spec", reserveRefused(spec.Tuning.Reserve, spec.Sizing.Limit))
	for _, e := range spec.Containers {
		at := "spec.containers[" + e.Name + "]"
		own := *orPointer(e.Tuning, &v1alpha1.TuningSpec{})
		add(at, heapLimitRefused(*orPointer(e.Runtime, &spec.Runtime), own))
		if own.Reserve != nil || e.Limit != nil { // otherwise the profile's common settings
			both := stated(spec, &e)
			add(at, reserveRefused(both.Tuning.Reserve, both.Sizing.Limit))
		}
	}
	return out
}

// heapLimitRefused returns why the declared runtime cannot have a heapLimit; empty: it can, or none is set.
func heapLimitRefused(r v1alpha1.RuntimeSpec, t v1alpha1.TuningSpec) string {
	why := runtimes.Lookup(string(r.Type)).NoHeapLimit
	if why == "" || t.HeapLimit == nil {
		return ""
	}
	return fmt.Sprintf("heapLimit: %s %s", t.HeapLimit, why)
}

// reserveRefused returns an error if no limit within the bounds would leave memory besides the reserve.
func reserveRefused(reserve *v1alpha1.MemoryQuantity, limit *v1alpha1.Bounds) string {
	if reserve == nil || limit == nil || limit.Max == nil || reserve.Cmp(limit.Max.Quantity) < 0 {
		return ""
	}
	return fmt.Sprintf("reserve: %s is not below the largest limit of %s (limit.max), which leaves nothing for the "+
		"runtime: lower reserve, or raise limit.max", reserve, limit.Max)
}
