// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package v8 reads the heap of V8, as in Node.js 18 to 26, from outside. V8 keeps its heap in pages of 256 KiB and
// larger ones for large objects. Each begins with a header, or with a pointer to one, with its allocated bytes. The
// header has had three layouts, each recognized by fields that must match the page's address, independent of the
// version.
//
// Allocated memory includes garbage, which only a collection can separate.
package v8
