// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package readers is the list of all readers of heaps, in the order in which they are asked.
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

// All returns the readers: first the runtime that names its ranges itself, then the allocator whose headers are the
// surest, then those that are known by the headers of their pages. now is the clock; nil: no reader waits for anything.
func All(now func() time.Time) []attribution.Reader {
	return []attribution.Reader{
		hotspot.Reader{Now: now}, glibc.Reader{}, golang.Reader{Now: now}, v8.Reader{}, cpython.Reader{}, ruby.Reader{},
	}
}
