// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentnode runs the agent's program with real processes in synthetic pods. Files replace the kernel's cgroup
// counters, and an API server serves the pods and records every write of the agent. Tests use it to check everything
// that the agent sends, and to measure the agent's cost.
package agentnode
