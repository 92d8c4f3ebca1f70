// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package newruntime does what CONTRIBUTING.md says about adding a runtime, with one that no one uses: it copies the
// tree, adds one file and one folder of golden pairs, generates, and looks whether memfit knows the runtime
// everywhere.
package newruntime
