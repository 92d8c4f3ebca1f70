// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Program goprobe reports what the Go runtime made of its environment. It builds with Go 1.18, so it has no main of
// newer habits.
package main

import (
	"fmt"
	"os"
	"runtime/debug"
)

func main() {
	fmt.Printf("limit=%s\n", memoryLimit())
	fmt.Printf("gogc=%d\n", debug.SetGCPercent(100))
	fmt.Printf("AUTOMEMLIMIT=%s\n", os.Getenv("AUTOMEMLIMIT"))
	if len(os.Args) > 1 { // "idle": stay until the input ends
		_, _ = os.Stdin.Read(make([]byte, 1))
	}
}
