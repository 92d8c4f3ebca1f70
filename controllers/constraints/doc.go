// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package constraints watches what else in the cluster determines a workload's memory: autoscalers, LimitRanges,
// ResourceQuotas and nodes. A workload is queued when one that concerns it changes.
package constraints
