// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package metricsapi reads usage from metrics.k8s.io (metrics-server), for clusters without access to kubelets or
// Prometheus.
//
// It has only working sets, and marks every reading so. It makes one list per cycle for all nodes, through the given
// rest.Config; RBAC: list on pods of metrics.k8s.io.
package metricsapi
