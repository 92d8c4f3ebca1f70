// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitops tests docs/guide/gitops.md and its example: the Lua health check of profiles with Argo CD's
// interpreter, the status of profiles with kstatus, which Flux uses, and the manifests for both.
package gitops
