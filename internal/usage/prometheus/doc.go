// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package prometheus reads usage from any server of the Prometheus HTTP API (Prometheus, Thanos, Mimir,
// VictoriaMetrics): the current usage of containers, and days of history for a new workload, so that recommendations
// need not wait for memfit's own samples.
//
// Current usage takes three queries per node and cycle. That suits a fallback and small clusters; with thousands of
// nodes, use kubelets for current usage.
//
// Responses are bounded and errors precise, and the package never writes. It only uses the network and the configured
// token and CA files.
package prometheus
