// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelet reads usage and kill counters from kubelets directly: /stats/summary and /metrics/cadvisor on the
// node's own port, never through nodes/proxy, which would let memfit run commands in any pod. It needs RBAC get on
// nodes/stats, and nodes/metrics for the counters.
//
// It promises that answers are bounded (bytes, nesting, time), that a broken or hostile kubelet can make it return an
// error but nothing else, and that a figure the kubelet did not report is left out instead of being zero. It touches
// the network, and the token and CA files that rest.Config names.
package kubelet
