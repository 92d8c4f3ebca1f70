// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentbench measures the agent's cost at tier See (`make bench-agent`): its CPU time and RSS with about a
// hundred containers of real runtimes, and its effect on an allocating process, with the agent stopped and running in
// turns. It fails if a bound is exceeded. It needs root, real cgroups and the build tag e2e.
package agentbench
