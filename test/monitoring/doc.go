// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring holds the alerts and the dashboard of config/prometheus to what docs/reference/manager.md says
// memfit registers, to docs/guide/troubleshooting.md, and to histories that promtool plays through the alerts. A module
// of its own, so that Prometheus' packages never move a dependency of the operator.
package monitoring
