// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests the alerts and the dashboard of config/prometheus: against the metrics in
// docs/reference/manager.md, the runbooks in docs/guide/troubleshooting.md, and with promtool's unit tests of alerts.
// It is a module of its own, so that Prometheus' packages never change a dependency of the operator.
package monitoring
