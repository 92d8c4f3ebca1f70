// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package shape says what the memory of a container does over time ([Classify]): whether it stands still, rises and
// falls, climbs without end, keeps what it took, or fills what its runtime gives it; which replicas stand out
// ([Outliers]); and whether the kills themselves show a leak that is faster than samples ([FindRamps]). It reads no
// clock and performs no I/O: equal input gives equal output. docs/guide/signals.md is the same for users.
//
// In reading order: shape.go (the nouns), classify.go (instances, and what they say together), rules.go (one instance),
// series.go, growth.go, steps.go and level.go (what the rules look at), compare.go (replicas and limits), summary.go
// (how it is told), history.go (evidence from internal/history), ramps.go (leaks that kill within minutes).
package shape
