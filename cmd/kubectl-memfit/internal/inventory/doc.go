// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package inventory says what runs in a cluster and what memory it takes: a line for each container ([Container], for
// `kubectl memfit top`) and one for each workload ([Workload], for `kubectl memfit scan`), and profiles for the
// workloads that have none. It is pure: pods, snapshots, recommendations and readings in, values and text out.
//
// What an agent found inside comes before what somebody declared, and that before what image and command suggest;
// every answer says which of them it is.
package inventory
