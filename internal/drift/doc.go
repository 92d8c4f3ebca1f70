// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package drift decides whether a pod that retains or leaks memory should make room for a fresh one now, before the
// kernel kills it in the middle of its work. It reads no clock and performs no I/O: equal input gives equal output. On
// doubt it leaves the pod alone.
package drift
