// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package readers lists all readers of heaps, in their order of use.
package readers

import (
	"time"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/cpython"
	"github.com/memfit/memfit/internal/attribution/glibc"
	"github.com/memfit/memfit/internal/attribution/golang"
	"github.com/memfit/memfit/internal/attribution/hotspot"
	"github.com/memfit/memfit/internal/attribution/ruby"
	"github.com/memfit/memfit/internal/attribution/v8"
)

// All returns the readers: first the runtime that names its ranges itself, then the allocator with the most certain
// headers, then those recognized by headers of pages. now is the clock; nil: no reader waits.
func All(now func() time.Time) []attribution.Reader {
	return []attribution.Reader{
		hotspot.Reader{Now: now}, glibc.Reader{}, golang.Reader{Now: now}, v8.Reader{}, cpython.Reader{}, ruby.Reader{},
	}
}
