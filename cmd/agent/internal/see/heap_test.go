// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package see

import (
	"testing"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/attribution/amounts"
)

// TestWithHeap: what was detected is kept for the process's life, and the heap comes with each reading.
func TestWithHeap(t *testing.T) {
	usages := func(reader string) []amounts.Usage {
		return []amounts.Usage{{Reader: reader, Details: map[string]int64{"MaxHeapSize": 6 << 30}}}
	}
	jvm := &v1alpha1.InspectedRuntime{Type: "JVM"}
	got := withHeap(jvm, usages("hotspot"))
	if got.MaxHeap == nil || got.MaxHeap.String() != "6Gi" || jvm.MaxHeap != nil {
		t.Errorf("%v, and what was detected has %v", got.MaxHeap, jvm.MaxHeap)
	}
	if got := withHeap(jvm, usages("v8")); got.MaxHeap != nil {
		t.Errorf("another reader's number: %v", got.MaxHeap)
	}
	if got := withHeap(&v1alpha1.InspectedRuntime{Type: "Go"}, usages("go")); got.MaxHeap != nil {
		t.Errorf("a runtime without such a number: %v", got.MaxHeap)
	}
	if withHeap(nil, usages("hotspot")) != nil {
		t.Error("nothing was detected, and something is found")
	}
}
