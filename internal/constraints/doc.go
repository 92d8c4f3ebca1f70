// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package constraints finds what in the cluster, besides memfit, sets or bounds a workload's memory: autoscalers that
// set memory or scale on it, LimitRanges, ResourceQuotas, and the sizes of nodes. The webhook and the controllers pass
// the objects as arguments; the package reads no clock and performs no I/O. Malformed objects have no effect.
package constraints
