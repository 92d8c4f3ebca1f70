// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package newruntime follows the steps of CONTRIBUTING.md for adding a runtime, with a synthetic one: in a copy of the
// repository it adds one file and one folder of golden pairs, generates code and docs, and checks that every part of
// memfit supports the runtime.
package newruntime
