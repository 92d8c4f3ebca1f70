// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package boundedjson decodes JSON that any client may send, within bounds of memory and time: [Decode] refuses
// quantities that take minutes to parse, and texts of nearly empty items, which become hundreds of times larger in
// memory. Pure.
package boundedjson
