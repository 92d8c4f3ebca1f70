// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package ruby reads the object heap of CRuby from outside. Its pages, of 16 KiB in Ruby 3.1 and of 64 KiB in later
// ones, begin with a pointer to a structure that holds how many slots the page has, how large they are, and how many
// are free; that structure points back at the page. Strings and arrays that do not fit into a slot come from malloc.
package ruby
