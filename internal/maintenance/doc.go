// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package maintenance reports whether a maintenance window is open: the times in which the owner of a workload lets
// memfit lower, restart or evict running pods (sizing.disruption.windows). A window is a schedule in the five fields
// of a CronJob, a duration and a time zone.
//
// Pure: time is an argument. The schedule is read by the parser that Kubernetes uses for CronJobs. Names of time zones
// need the zones of the program or of the machine: cmd/manager and cmd/kubectl-memfit link their own copy.
package maintenance
