// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package oom counts the OOM kills of a workload, each exactly once, and stalls just below a limit ([Ledger]). The
// workload controller feeds it with pod statuses, kernel counters and agents' reports. It reads no clock and performs
// no I/O. docs/design/ledger.md describes it for users.
//
// Read observe.go (a pod's status), ledger.go and cursor.go (new events), judge.go (the cause of a container's end),
// effective_limit.go and clock.go (the limit and time of a kill), counters.go and agents.go (the kernel's counter and
// node agents, which report kills without a status, or more about known ones), bounds.go, encode.go and pack.go
// (storage and its bounds).
//
// Some containers stall instead of being killed: stall_watch.go and stall_interval.go find stalls in samples, and
// stalls.go records them. A higher limit helps against both ([Ledger.KillsAndStalls]).
package oom
