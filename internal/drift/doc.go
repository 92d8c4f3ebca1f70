// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package drift finds the pod that retains or leaks memory and should make room for a fresh one before the kernel kills
// it in the middle of its work. Whether it is restarted now, package rollout decides. It reads no clock and performs no
// I/O: equal input gives equal output. On doubt it proposes no pod.
package drift
