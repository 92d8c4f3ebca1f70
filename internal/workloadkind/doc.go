// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package workloadkind is the table of kinds that have pods: what people call them, where they keep the template of
// their pods, and what can be done with them. It is pure.
package workloadkind
