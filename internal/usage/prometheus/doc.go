// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package prometheus reads usage from anything that speaks the Prometheus HTTP API (Prometheus, Thanos, Mimir,
// VictoriaMetrics): what containers use now, and days of history at the first sight of a workload, so that
// recommendations need not wait for memfit's own.
//
// What containers use now takes three queries per node and cycle. That is right for a fallback and for small clusters;
// where there are thousands of nodes, let kubelets answer and Prometheus remember.
//
// It promises bounded answers and precise errors, and never writes. It touches the network and the token and CA files
// it is told of.
package prometheus
