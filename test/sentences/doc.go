// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package sentences tests that memfit never parses its own text for users: with every sentence replaced by a key, its
// decisions are the same.
package sentences
