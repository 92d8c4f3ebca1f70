//go:build go1.19
// +build go1.19

// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime/debug"
)

func memoryLimit() string { return fmt.Sprint(debug.SetMemoryLimit(-1)) }
