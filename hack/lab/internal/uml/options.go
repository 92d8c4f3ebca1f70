// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package uml

import (
	"fmt"
	"slices"
	"strings"
)

// Variants are settings of the node that change what the kernel does with memory. All are off unless asked for, as in
// Kubernetes.
type Variants struct {
	// SingleProcessOOMKill leaves memory.oom.group at 0: a kill takes one process instead of the whole container.
	SingleProcessOOMKill bool `json:"singleProcessOOMKill,omitempty"`
	// Swap gives the node a swap device, and containers their share of it (LimitedSwap).
	Swap bool `json:"swap,omitempty"`
	// MemoryQoS sets memory.high between request and limit, so that a container is slowed down before it is killed.
	MemoryQoS bool `json:"memoryQoS,omitempty"`
}

// variantNames are what people write, in the order in which the names are listed.
var variantNames = []string{"single-process-oom-kill", "swap", "memory-qos"}

func (v *Variants) fields() []*bool { return []*bool{&v.SingleProcessOOMKill, &v.Swap, &v.MemoryQoS} }

// ParseVariants reads a list of names separated by commas. An empty list is the plain node.
func ParseVariants(list string) (Variants, error) {
	var v Variants
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		i := slices.Index(variantNames, name)
		if i < 0 {
			return Variants{}, fmt.Errorf("no variant of the node is named %q; there are %s",
				name, strings.Join(variantNames, ", "))
		}
		*v.fields()[i] = true
	}
	return v, nil
}

// String lists the names, as ParseVariants reads them.
func (v Variants) String() string {
	var names []string
	for i, on := range v.fields() {
		if *on {
			names = append(names, variantNames[i])
		}
	}
	return strings.Join(names, ",")
}
