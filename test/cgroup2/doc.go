// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package cgroup2 holds what memfit takes for granted about memory on a node with cgroup v2 against a real one: how a
// kill shows in pod status, counters and kernel log, which limit a kubelet refuses, and what memory.high and swap look
// like from outside. memfit itself is not asked; a test that fails reports that the ground under it has moved.
//
// `make test-cgroup2` adds the node to the lab (hack/lab/README.md) and runs the tests on each of its variants. A test
// that needs another variant than the node has is skipped, and so is every test on a cluster without such a node. The
// tests need the build tag e2e.
package cgroup2
