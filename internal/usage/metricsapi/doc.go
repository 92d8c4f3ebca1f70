// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package metricsapi reads usage from metrics.k8s.io (metrics-server), for clusters that allow neither kubelets nor
// Prometheus to be asked.
//
// It knows the working set only, and marks every reading so. It promises one list per cycle however many nodes are
// asked for, and touches the API server through the rest.Config it is given; RBAC: list on pods of metrics.k8s.io.
package metricsapi
