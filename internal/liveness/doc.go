// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package liveness knows what workers are on, so that a stuck one fails the liveness check.
package liveness
