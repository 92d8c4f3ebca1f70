// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale measures the cost of memfit's control loop as a cluster grows: CPU time and live heap per container,
// the size of a checkpoint, and API writes. `make bench-scale` measures large clusters, and `make test` a small one;
// docs/evidence/scale.md has the results.
//
// It drives memfit's workload reconciler with an API server that consists of a few maps and with a synthetic clock, so
// that hours pass in seconds.
package scale
