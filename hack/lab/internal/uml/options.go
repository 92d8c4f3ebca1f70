// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package uml

import (
	"fmt"
	"slices"
	"strings"
)

// Variants are settings of the node that change how its kernel manages memory. By default all are off, as in
// Kubernetes.
type Variants struct {
	// SingleProcessOOMKill leaves memory.oom.group at 0: a kill takes one process instead of the whole container.
	SingleProcessOOMKill bool `json:"singleProcessOOMKill,omitempty"`
	// Swap adds a swap device to the node. Containers may use a share of it (LimitedSwap).
	Swap bool `json:"swap,omitempty"`
	// MemoryQoS sets memory.high between request and limit, so that a container is slowed down before it is killed.
	MemoryQoS bool `json:"memoryQoS,omitempty"`
}

// variantNames are the names of the variants in the order of fields.
var variantNames = []string{"single-process-oom-kill", "swap", "memory-qos"}

func (v *Variants) fields() []*bool { return []*bool{&v.SingleProcessOOMKill, &v.Swap, &v.MemoryQoS} }

// ParseVariants parses a comma-separated list of names. An empty list means no variants.
func ParseVariants(list string) (Variants, error) {
	var v Variants
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		i := slices.Index(variantNames, name)
		if i < 0 {
			return Variants{}, fmt.Errorf("unknown variant %q of the node; the variants are %s",
				name, strings.Join(variantNames, ", "))
		}
		*v.fields()[i] = true
	}
	return v, nil
}

// String returns the list of names that ParseVariants parses.
func (v Variants) String() string {
	var names []string
	for i, on := range v.fields() {
		if *on {
			names = append(names, variantNames[i])
		}
	}
	return strings.Join(names, ",")
}
