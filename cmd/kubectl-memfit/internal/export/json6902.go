// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// operation is one of RFC 6902. The order of its fields is that of the RFC's examples.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// operations returns operations that set the memory of each container, after a test of the name at its index.
func (w *workload) operations() []operation {
	var ops []operation
	for i := range w.sized {
		c := &w.sized[i]
		ops = append(ops, c.test)
		ops = append(ops, c.operations(c.at+"/"+c.field)...)
	}
	return ops
}

// operations adds the smallest missing piece of the template: an added value replaces the previous one, and cpu must
// remain.
func (c *container) operations(at string) []operation {
	if len(c.resources.Limits) == 0 && len(c.resources.Requests) == 0 && len(c.resources.Claims) == 0 {
		return []operation{{"add", at, c.wanted()}}
	}
	return append(
		set(at+"/limits", c.resources.Limits, c.rec.Recommended.Limit),
		set(at+"/requests", c.resources.Requests, c.rec.Recommended.Request)...)
}

func set(at string, have corev1.ResourceList, want *resource.Quantity) []operation {
	if want == nil {
		return nil
	}
	if len(have) == 0 {
		return []operation{{"add", at, tree{"memory": want.String()}}}
	}
	if _, found := have[corev1.ResourceMemory]; found {
		return []operation{{"replace", at + "/memory", want.String()}}
	}
	return []operation{{"add", at + "/memory", want.String()}}
}
