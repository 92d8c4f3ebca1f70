// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/runtimes"
)

// Invalid says what is wrong with spec that the API's own rules cannot say, each with what to change. An empty answer
// means that the profile can be applied as it is.
func Invalid(spec *v1alpha1.MemoryProfileSpec) []string {
	var out []string
	if spec.Selector != nil {
		if _, err := metav1.LabelSelectorAsSelector(spec.Selector); err != nil {
			out = append(
				out,
				fmt.Sprintf(
					"spec.selector chooses no pod, because it cannot be read (%v): correct it, or remove it and use the %s annotation",
					err, v1alpha1.ProfileAnnotation,
				),
			)
		}
	}
	_, wrong := Windows(spec.Sizing.Disruption)
	return append(append(out, wrong...), refused(spec)...)
}

// Invalid returns what is wrong with what the profile itself declares, its namespaceSelector included.
func (n *Profile) Invalid() []string {
	out := Invalid(n.Declared())
	if n.NamespaceSelector == nil {
		return out
	}
	if _, err := metav1.LabelSelectorAsSelector(n.NamespaceSelector); err != nil {
		out = append(out, fmt.Sprintf(
			"spec.namespaceSelector chooses no namespace, because it is invalid (%v): correct it, or remove it to choose every "+
				"namespace", err,
		))
	}
	return out
}

// refused says which settings of spec mean nothing beside others of it. All that is looked at is at hand, so that it
// may be asked for each of many profiles.
func refused(spec *v1alpha1.MemoryProfileSpec) []string {
	var out []string
	if text := heapLimitRefused(spec.Runtime, spec.Tuning); text != "" {
		out = append(out, "spec.tuning."+text)
	}
	if text := reserveRefused(spec.Tuning.Reserve, spec.Sizing.Limit); text != "" {
		out = append(out, "spec.tuning."+text)
	}
	for _, e := range spec.Containers {
		runtime := spec.Runtime
		if e.Runtime != nil {
			runtime = *e.Runtime
		}
		own := v1alpha1.TuningSpec{}
		if e.Tuning != nil {
			own = *e.Tuning
		}
		if text := heapLimitRefused(runtime, own); text != "" {
			out = append(out, fmt.Sprintf("spec.containers[%s].tuning.%s", e.Name, text))
		}
		if own.Reserve == nil && e.Limit == nil { // nothing that the profile does not say for all
			continue
		}
		both := stated(spec, &e)
		if text := reserveRefused(both.Tuning.Reserve, both.Sizing.Limit); text != "" {
			out = append(out, fmt.Sprintf("spec.containers[%s].tuning.%s", e.Name, text))
		}
	}
	return out
}

// heapLimitRefused says why the declared runtime may not be given a heap in bytes; empty: it may, or none is asked for.
func heapLimitRefused(r v1alpha1.RuntimeSpec, t v1alpha1.TuningSpec) string {
	why := runtimes.Lookup(string(r.Type)).NoHeapLimit
	if why == "" || t.HeapLimit == nil {
		return ""
	}
	return fmt.Sprintf("heapLimit: %s %s", t.HeapLimit, why)
}

// reserveRefused says that no limit within the bounds would leave anything besides the reserve; empty: one does, or
// nothing is reserved.
func reserveRefused(reserve *v1alpha1.MemoryQuantity, limit *v1alpha1.Bounds) string {
	if reserve == nil || limit == nil || limit.Max == nil || reserve.Cmp(limit.Max.Quantity) < 0 {
		return ""
	}
	return fmt.Sprintf("reserve: %s is not below the largest limit of %s (limit.max), so that nothing would be left for "+
		"the runtime: lower reserve, or raise limit.max", reserve, limit.Max)
}
