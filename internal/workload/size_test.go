// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"unsafe"
)

// TestInstanceStaysSmall: there is one for each running container of the cluster. Ten of them, a usual workload's, take
// one of the allocator's blocks of 4864 bytes.
func TestInstanceStaysSmall(t *testing.T) {
	if got := unsafe.Sizeof(instance{}); got > 424 {
		t.Errorf("an instance takes %d bytes, want at most 424", got)
	}
}
