// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package readers lists all readers of heaps in the order in which attribution.Attribute calls them.
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

// All returns the readers, those with the most certain evidence first: hotspot reads exported tables, glibc compares
// headers with each other, and the others recognize counters or headers of pages. now is the clock of readers that
// watch a process for a second; nil: each reads once.
func All(now func() time.Time) []attribution.Reader {
	return []attribution.Reader{
		hotspot.Reader{Now: now}, glibc.Reader{}, golang.Reader{Now: now}, v8.Reader{}, cpython.Reader{}, ruby.Reader{},
	}
}
