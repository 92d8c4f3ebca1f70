// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package expect has assertions for tests with a real API server: expect.Applied(ctx, c, objects...). A failed
// assertion fails the running Gomega test at the caller's line.
package expect
