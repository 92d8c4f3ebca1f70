// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package compress shortens periods of evidence in tests.
package compress

import (
	"testing"

	"github.com/memfit/memfit/internal/period"
)

// By divides the periods of evidence by a factor until the test ends. Tests that call it must not be parallel.
func By(t *testing.T, factor int) {
	t.Helper()
	before := period.Factor()
	if err := period.Compress(factor); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = period.Compress(before) })
}
