// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package prometheus reads usage from anything that speaks the Prometheus HTTP API (Prometheus, Thanos, Mimir, VictoriaMetrics): what
// containers use now, and days of history at the first sight of a workload, so that recommendations need not wait for memfit's own.
//
// It promises bounded answers and precise errors, and never writes. It touches the network and the token and CA files it is told of.
package prometheus
