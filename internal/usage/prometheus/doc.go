// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package prometheus reads usage from any server of the Prometheus HTTP API (Prometheus, Thanos, Mimir,
// VictoriaMetrics): what containers use now, and days of history when a workload is first seen, so that
// recommendations need not wait for memfit's own.
//
// What containers use now takes three queries per node and cycle. That is right for a fallback and for small clusters;
// with thousands of nodes, let kubelets answer and Prometheus remember.
//
// Answers are bounded and errors precise, and the package never writes. It only uses the network and the configured
// token and CA files.
package prometheus
