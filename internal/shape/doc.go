// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package shape classifies the memory of a container over time ([Classify]): whether it is flat, rises and falls, grows
// steadily, is retained, or fills its runtime's cap; which replicas are far above the others ([Outliers]); and whether
// the kills themselves show a leak that is faster than samples ([FindRamps]). It reads no clock and performs no I/O:
// equal input gives equal output. docs/reference/shapes.md describes it for users.
//
// In reading order: shape.go (the types, and evidence from internal/history), classify.go (instances, and their common
// result), rules.go (one instance), series.go, growth.go, steps.go and level.go (measures for the rules), compare.go
// (replicas and limits), summary.go (the text), ramps.go (leaks that kill within minutes).
package shape
