// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, "the agent reads cgroups and /proc, and runs on Linux only, not on %s\n", runtime.GOOS)
	os.Exit(1)
}
