// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package build makes objects for tests in the words of the domain: build.Pod("shop", "web-1").Container("app",
// build.Limit("512Mi")). It touches nothing; what it returns is as a cluster would show it, status included.
package build
