// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package build builds Kubernetes objects for tests, with the status that a cluster would set: build.Pod("shop",
// "web-1").Container("app", build.Limit("512Mi")).
package build
