// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package arch tests repository rules that linters do not check: allowed imports of each layer, package docs,
// manifests, links and tables of the docs. The tests read the whole repository and change nothing. layers_test.go has
// the table of layers; docs/design/architecture.md has the reasons.
package arch
