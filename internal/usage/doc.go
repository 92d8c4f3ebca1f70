// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage says what memory containers use right now, whoever measures it: [Source] is the question, its
// subpackages are answers.
//
// It promises that "unknown" never reads as "uses nothing": a node that does not answer is a [Gap] with its error and
// since when, a field that a source cannot see has its Has… flag false, and a source that only knows the working set
// says so in [Reading.WorkingSetOnly]. The package itself opens no connection and reads no clock; [Collector] takes
// both as arguments.
package usage
