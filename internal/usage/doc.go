// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage reads what memory containers use now, from any source: [Source] is the interface, its subpackages are
// implementations.
//
// "Unknown" never reads as "uses nothing": a node that does not answer is a [memory.Silence] with its error and since
// when, a field that a source cannot see has its Has… flag false. The package itself opens no connection and reads no
// clock; [Collector] takes both as arguments.
package usage
