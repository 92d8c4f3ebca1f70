// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package chaos breaks a cluster in every way that clusters break and holds memfit to figures meanwhile: kills lost or
// doubled, pods kept from being created, pods disrupted beyond maxUnavailable, time until everything is as it should
// be. `make chaos` runs all of it, prints a line for each fault and writes docs/evidence/chaos.md; it takes about a
// minute for each fault.
//
// Real are etcd, kube-apiserver, kube-controller-manager and two replicas of the manager, each a process of this test.
// Nodes are synthetic, because the kubelet is where faults are put: package test/kubelet ends containers and knows how
// many kills there were, and nodes_test.go shows them to the API server and answers /stats/summary. Between a replica
// and the API server stands a gate (gate_test.go) that cuts, freezes or holds what passes; between the API server and
// etcd a link that is slow (link_test.go).
package chaos
