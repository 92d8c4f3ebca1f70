// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package expect states what tests expect of a real API server, one sentence per function: expect.Applied(ctx, c,
// objects...). A sentence that does not come true fails the running Gomega assertion at the caller's line. It touches
// the API server it is given.
package expect
