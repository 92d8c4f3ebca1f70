// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"
	"unsafe"
)

func TestAContainerFitsItsBudget(t *testing.T) {
	const want = 1536
	if got := unsafe.Sizeof(Container{}); got > want {
		t.Errorf("a Container takes %d bytes, want at most %d", got, want)
	}
}
