// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command scalebench measures what memfit costs as a cluster grows, and the Vertical Pod Autoscaler's recommender
// beside it, in the same run and on the same synthetic containers: processor time and live heap per container, the size
// of a checkpoint, and API writes.
//
// It drives the code that runs in a cluster - memfit's workload reconciler, VPA's own Go module - with an API server
// that is a few maps and a clock that it sets itself, so that months pass in seconds. It reads and writes nothing but
// its output.
package main
