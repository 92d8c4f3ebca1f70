// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster reads the objects that the verbs report: recommendations, profiles, workloads. It never writes. Its
// errors name what is missing (memfit itself, a permission, the cluster) and how to get it.
package cluster
