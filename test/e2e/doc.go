// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e runs memfit's promises on a real node: a real kubelet, real cert-manager controllers, real runtimes and
// real kernel OOM kills. make test-e2e brings the node up, installs memfit and runs it; every spec lives in a namespace
// of its own.
package e2e
