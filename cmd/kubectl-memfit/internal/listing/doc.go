// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package listing prints the results of commands in the formats of kubectl get: a table, names, and with cli-runtime's
// printers JSON, YAML and JSONPath. It is pure: the same list gives the same bytes.
package listing
