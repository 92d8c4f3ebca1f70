// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import "time"

// Silence is a node that does not say what its containers use.
type Silence struct {
	Node string
	// Error is what came instead of an answer, in one line.
	Error string
	// Since is when the node was first asked in vain.
	Since time.Time
}
