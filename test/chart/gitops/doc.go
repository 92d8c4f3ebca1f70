// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitops holds docs/guide/gitops.md to what Argo CD and Flux make of memfit's profiles: the health check in
// Lua, run by the interpreter that Argo CD uses, and kstatus, by which Flux waits.
package gitops
