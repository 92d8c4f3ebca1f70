// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package shape classifies what the memory of a container does over time ([Classify]): whether it is flat, rises and
// falls, grows steadily, keeps what it took, or fills what its runtime gives it; which replicas are far above the
// others ([Outliers]); and whether the kills themselves show a leak that is faster than samples ([FindRamps]). It
// reads no clock and performs no I/O: equal input gives equal output. docs/reference/shapes.md is the same for users.
//
// In reading order: shape.go (the types), classify.go (instances, and their common result), rules.go (one instance),
// series.go, growth.go, steps.go and level.go (what the rules read), compare.go (replicas and limits), summary.go (how
// it is reported), history.go (evidence from internal/history), ramps.go (leaks that kill within minutes).
package shape
