// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package report writes the sentences that users read about OOM kills and stalls, in Events, conditions and
// recommendations: what happened, then the numbers, then what to do. It decides nothing, and nothing reads its
// sentences back (test/sentences).
package report
