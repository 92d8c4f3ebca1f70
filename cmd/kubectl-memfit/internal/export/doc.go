// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package export writes recommendations as patches for Git. It is pure, and equal input gives equal bytes: whoever
// commits its output every night has an empty diff as long as no recommendation changed.
//
// Only what people keep in Git is exported: workloads with a pod template. What cannot be exported, a workload or one
// of its containers, is a comment that says why.
package export
