// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions makes the conditions of a status.
package conditions
