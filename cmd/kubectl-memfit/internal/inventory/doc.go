// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory lists the containers of a cluster and their memory: a line for each container ([Container], for
// `kubectl memfit top`) and one for each workload ([Workload], for `kubectl memfit scan`), and writes profiles for
// workloads without one. It is pure: pods, snapshots, recommendations and readings in, values and text out.
//
// Findings of an agent take precedence over the profile's declaration, and that over image and command; every runtime
// names its source.
package inventory
