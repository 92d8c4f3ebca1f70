// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package inbox knows which pods belong to which workload, and keeps what happened to each workload until its reconcile
// has dealt with it.
package inbox
