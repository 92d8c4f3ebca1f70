// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package krew checks a release's krew manifest with krew's own validation, and installs the plugin from it with krew.
package krew
