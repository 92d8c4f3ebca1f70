// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentbench measures what the agent costs at tier See: its own processor time and RSS beside some hundred
// containers of real runtimes, and what an allocating process notices of it, with the agent stopped and running in
// turns (`make bench-agent`). It fails where a bound is broken. It takes root, real cgroups and the build tag e2e.
package agentbench
