// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package krew holds the manifest that a release has for krew to krew's own validation, and lets krew install the
// plugin from it.
package krew
