// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package oom counts OOM kills, each exactly once, and stalls just below a limit ([Ledger]). It reads no clock and
// performs no I/O: equal input gives equal output. Of Kubernetes it reads only pods. docs/design/ledger.md describes it
// for users.
//
// In reading order: observe.go (contents of a pod's status), ledger.go and cursor.go (detection of new events),
// judge.go (classification of a container's end), effective_limit.go and clock.go (limit and time), counters.go and
// agents.go (the kernel's counter and node agents, which report other kills, or the same ones differently), bounds.go,
// encode.go and pack.go (storage and its bounds).
//
// Some containers stall instead of being killed: stall_watch.go and stall_interval.go find stalls in samples, and
// stalls.go records them besides kills, because a higher limit helps against both ([Ledger.KillsAndStalls]).
package oom
