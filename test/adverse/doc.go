// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package adverse runs odd workloads on a real node beside memfit and holds it to bounds: crash loops, leaks, spikes,
// stalls, children that are killed, LimitRanges, quotas, a full node. What is measured is what a cluster's owner would
// care about: the highest limit memfit asked for, whether requests cover use, how long until the workload is well, and
// how many pods were disturbed. `make test-adverse` runs all of it and prints the table that is kept in
// docs/evidence/adverse.md; CI runs what has failed before. The tests need the build tag e2e.
package adverse
