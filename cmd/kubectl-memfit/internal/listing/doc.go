// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package listing prints what commands found, in formats that kubectl get has: a table, names, and with cli-runtime's
// printers JSON, YAML and JSONPath. It is pure: the same list gives the same bytes.
package listing
