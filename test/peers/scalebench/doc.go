// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command scalebench measures what memfit's control loop costs as a cluster grows: processor time and live heap per
// container, the size of a checkpoint, and API writes. VPA's recommender is measured beside it on one cluster, by the
// command in cluster.
//
// It drives memfit's workload reconciler with an API server that is a few maps and a clock that it sets itself, so that
// months pass in seconds. It reads and writes nothing but its output.
package main
