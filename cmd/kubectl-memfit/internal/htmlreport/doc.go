// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package htmlreport makes one page of HTML from recommendations and the histories behind them, for `kubectl memfit
// report`: workloads that need attention, use against requests and limits over time, kills, stalls and memfit's
// changes. The page loads nothing and runs nothing.
package htmlreport
