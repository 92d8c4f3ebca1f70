// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package profile is the reconciler of profiles: it sums up the recommendations of the workloads that a profile governs
// in its status.
package profile
