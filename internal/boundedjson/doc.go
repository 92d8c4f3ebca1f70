// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package boundedjson reads JSON that anybody may send, within bounds of memory and time.
//
// [Decode] decodes into Go types and refuses what would choke a decoder: quantities that take minutes to read, and
// texts of nearly empty items, which become hundreds of times larger in memory. [Scanner] walks over a text once, for
// those who want little of it. Pure.
package boundedjson
