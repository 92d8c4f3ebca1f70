// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster reads from a cluster what the verbs report: recommendations, profiles, workloads. It never writes.
// Its errors say what is missing (memfit itself, a right, the cluster) and how to get it.
package cluster
