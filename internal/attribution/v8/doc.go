// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package v8 reads the heap of V8, as in Node.js 18 to 26, from outside. V8 keeps its heap in pages of 256 KiB and
// larger ones for large objects. Each begins with a header, or with a pointer to one, that holds how much of it is
// allocated. The header has had three layouts; each is recognized by fields that must agree with the page's own
// address, so that the version need not be known.
//
// Allocated is not alive: garbage counts until a collection, and only a collection can separate the two.
package v8
