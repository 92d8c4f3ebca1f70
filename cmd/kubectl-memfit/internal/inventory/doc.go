// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory lists what runs in a cluster and the memory it uses: a line for each container ([Container], for
// `kubectl memfit top`) and one for each workload ([Workload], for `kubectl memfit scan`), and profiles for workloads
// without one. It is pure: pods, snapshots, recommendations and readings in, values and text out.
//
// What an agent found takes precedence over what a profile declares, and that over what image and command suggest;
// every answer names its source.
package inventory
