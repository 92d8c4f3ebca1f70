// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package listing prints what commands found, in the formats that kubectl get has: a table, csv, names, and with
// cli-runtime's printers JSON, YAML, JSONPath and custom columns. It is pure: the same list gives the same bytes.
package listing
