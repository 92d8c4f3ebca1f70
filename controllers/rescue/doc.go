// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package rescue raises limits before the kernel kills. It takes the alarms of agents from their MemorySnapshots,
// outside of the queue of workloads so that no queue delay counts, gathers what memfit knows from caches, lets
// internal/rescue decide, and has the workload reconciler write the loan down and send one resize. It runs on the
// leader.
package rescue
