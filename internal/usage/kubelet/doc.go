// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelet reads usage and kill counters directly from kubelets: /stats/summary and /metrics/cadvisor on the
// kubelet's port, never through nodes/proxy, a permission that also allows commands in any pod. It needs RBAC get on
// nodes/stats, and on nodes/metrics for the counters.
//
// Responses are bounded (bytes, nesting, time), so a broken or hostile kubelet can only cause an error. A number that
// the kubelet does not report is unknown, not zero. The package uses the network, and the token and CA files of
// rest.Config.
package kubelet
