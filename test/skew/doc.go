// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package skew upgrades CRDs, manager, agent and plugin one after the other on a real API server, forward and back,
// with programs of an older commit and of this one, and checks each combination that docs/guide/upgrading.md describes
// (make test-skew). There is no node: the test writes pod statuses as a kubelet would, and the agents read synthetic
// files of the kernel.
package skew
