// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage reads the current memory use of containers, from any source: [Source] is the interface, its subpackages
// are implementations.
//
// "Unknown" is never "uses nothing": a node without a response is a [memory.Silence] with its error and start, and a
// field that a source does not report has its Has… flag false. The package opens no connection and reads no clock;
// [Collector] takes both as arguments.
package usage
