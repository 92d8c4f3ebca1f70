// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests memfit on a real node: a real kubelet, real cert-manager controllers, real runtimes and real kernel
// OOM kills. make test-e2e starts the node, installs memfit and runs the specs, each in its own namespace.
package e2e
