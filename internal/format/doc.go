// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package format writes amounts, durations and counts as messages show them.
package format
