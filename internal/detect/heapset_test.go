// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"testing"

	"github.com/memfit/memfit/internal/runtimes"
)

// TestHeapSet: a number settles the heap, a share does not.
func TestHeapSet(t *testing.T) {
	for flag, want := range map[string]bool{
		"-Xmx300m": true, "-XX:MaxHeapSize=300m": true, "-XX:MaxRAM=1073741824": true, "-XX:MaxRAMPercentage=60.0": false,
		"-XX:MinRAMPercentage=60.0": false, "-XX:TrimNativeHeapInterval=60000": false,
	} {
		if got := fixesHeap(runtimes.Lookup("JVM"), flag); got != want {
			t.Errorf("%s sets the heap as a number: %t", flag, got)
		}
	}
	if !fixesHeap(runtimes.Lookup("NodeJS"), "--max_old_space_size=300") ||
		!fixesHeap(runtimes.Lookup("DotNet"), "DOTNET_GCHeapHardLimit=0x1000") ||
		fixesHeap(runtimes.Lookup("DotNet"), "DOTNET_GCHeapHardLimitPercent=0x46") {
		t.Error("Node.js or .NET: a number and a share are not distinguished")
	}
}
