// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package chaos injects faults into a cluster and checks memfit meanwhile: kills not counted or counted twice, pods
// whose creation fails, pods disrupted beyond maxUnavailable, and the time until everything has recovered. `make chaos`
// runs all faults, prints a line for each and writes docs/evidence/chaos.md; a fault takes about a minute.
//
// etcd, kube-apiserver, kube-controller-manager and two replicas of the manager are real processes. Nodes are
// synthetic, because faults are injected into kubelets: package test/kubelet ends containers and counts kills, and
// nodes_test.go writes pod statuses and serves /stats/summary. A replica reaches the API server through a gate
// (gate_test.go) that can refuse, freeze or hold requests; the API server reaches etcd through a slow link
// (link_test.go).
package chaos
