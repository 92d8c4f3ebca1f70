// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot converts the agent's readings to MemorySnapshots, compares them with those last written, and writes
// them to the API server.
package snapshot
