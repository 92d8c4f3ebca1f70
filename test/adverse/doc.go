// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package adverse runs difficult workloads on a real node with memfit and checks bounds: crash loops, leaks, spikes,
// stalls, killed child processes, LimitRanges, quotas, a full node. It measures the highest requested limit, whether
// requests cover use, how long until the workload is healthy, and how many pods were disrupted. `make test-adverse`
// runs all workloads and prints the table of docs/evidence/adverse.md; CI runs those that have failed before. The tests
// need the build tag e2e.
package adverse
