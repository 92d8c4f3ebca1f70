// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package format formats amounts, durations and counts for messages.
package format
