// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package arch holds the house rules that no linter knows: which room may import what, directly and through others,
// that every package states what it promises, and what may not stand in the manifests. Its tests read the whole
// repository and change nothing. The table of rooms is in rooms_test.go; docs/design/architecture.md tells the
// reasons.
package arch
