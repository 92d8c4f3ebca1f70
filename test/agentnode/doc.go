// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentnode runs the real program of the agent beside real processes, with synthetic pods around them: files
// that say what the kernel counts for each, and an API server that tells of the pods and keeps each request it gets,
// byte by byte. It is for what a cluster does not show: all that leaves the agent, and what the agent itself costs.
package agentnode
