// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale measures what memfit's control loop costs as a cluster grows: processor time and live heap per
// container, the size of a checkpoint, and API writes. `make bench-scale` measures large clusters, and `make test` a
// small one; docs/evidence/scale.md has what was found.
//
// It drives memfit's workload reconciler with an API server that is a few maps and a clock that it sets itself, so that
// months pass in seconds.
package scale
