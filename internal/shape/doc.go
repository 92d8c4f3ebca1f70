// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package shape classifies the memory of a container over time for internal/workload. [Classify] reports whether memory
// is flat, rises and falls, grows steadily or in steps, or fills its runtime's cap. [Outliers] finds replicas far above
// the others, and [FindRamps] finds leaks that kill within minutes. The package reads no clock and performs no I/O:
// equal input gives equal output. docs/reference/shapes.md describes the shapes for users.
//
// In reading order: shape.go (the types, and evidence from internal/history), classify.go (all instances together),
// rules.go (one instance), series.go, growth.go, steps.go and level.go (measures for the rules), compare.go (replicas
// and limits), summary.go (the text), ramps.go (leaks that kill within minutes).
package shape
