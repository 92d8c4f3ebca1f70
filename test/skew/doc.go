// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package skew upgrades and downgrades CRDs, manager, agent and plugin one after the other on a real API server, with
// programs of an older commit and of the current tree, and checks each combination in docs/guide/upgrading.md
// (make test-skew). There is no node: the test writes pod statuses as a kubelet would, and the agents read synthetic
// cgroup and proc files.
package skew
