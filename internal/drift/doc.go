// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package drift finds the pod that retains or leaks memory and should be replaced before the kernel kills it. Package
// rollout decides whether to restart it now. It reads no clock and performs no I/O: equal input gives equal output. If
// in doubt it proposes no pod.
package drift
