// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelet reads usage and kill counters from kubelets directly: /stats/summary and /metrics/cadvisor on the
// node's port, never through nodes/proxy, a right that also allows commands in any pod. It needs RBAC get on
// nodes/stats, and nodes/metrics for the counters.
//
// Responses are bounded (bytes, nesting, time); a broken or hostile kubelet can only cause an error; a figure that the
// kubelet did not report is missing, not zero. It uses the network, and the token and CA files in rest.Config.
package kubelet
