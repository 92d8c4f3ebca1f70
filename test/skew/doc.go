// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package skew upgrades CRDs, manager, agent and plugin one after the other on a real API server, forward and back,
// with programs of an older commit and of this one, and looks at each mixture that docs/guide/upgrading.md speaks of
// (make
// test-skew). There is no node: a pod's status says what a kubelet would, and the agents read files that say what the
// kernel would.
package skew
