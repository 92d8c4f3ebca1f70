// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package sentences holds that no text for users is read back by memfit: with every sentence replaced by a key, the
// decisions are the same.
package sentences
