// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package report describes memfit's findings, for users at a terminal and for machines: a row for each workload
// ([Row]), and everything about one ([Explanation]). It is pure: MemoryRecommendations and profiles in, text or values
// out; time and the choice of colors are arguments. It shows the reasons of conditions and never interprets them, so
// that a newer memfit may have more.
package report
