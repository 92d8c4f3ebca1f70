// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package cgroup2 tests memfit's assumptions about cgroup v2 on a real node, without memfit: how a kill appears in pod
// status, counters and kernel log, which limits a kubelet refuses, and what the kubelet reports about memory.high and
// swap. If a test fails, memfit may depend on behavior that has changed.
//
// `make test-cgroup2` adds the node to the lab (hack/lab/README.md) and runs the tests on each of its variants. A test
// is skipped if the cluster has no such node or the node is of another variant. The tests need the build tag e2e.
package cgroup2
