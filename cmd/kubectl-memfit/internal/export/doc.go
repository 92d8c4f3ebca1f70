// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package export writes recommendations as patches for Git. It is pure, and equal input gives equal bytes, so that a
// nightly commit of its output is empty as long as no recommendation changed.
//
// It exports workloads with a pod template, which are what Git holds. A workload or container that cannot be exported
// becomes a comment with the reason.
package export
