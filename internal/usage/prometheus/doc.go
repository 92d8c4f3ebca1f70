// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package prometheus reads usage from servers of the Prometheus HTTP API (Prometheus, Thanos, Mimir, VictoriaMetrics):
// the current usage of containers, and days of history for a new workload, so that recommendations need not wait for
// memfit's own samples.
//
// Current usage takes five queries per node and cycle, which suits a fallback and small clusters. With thousands of
// nodes, read kubelets instead.
//
// Responses are bounded. The package only reads, and uses the network and the configured token and CA files.
package prometheus
