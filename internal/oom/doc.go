// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package oom counts which OOM kills happened, each exactly once, and which containers stalled just below their limit
// ([Ledger]). It reads no clock and performs no I/O: equal input gives equal output. It reads pods (core/v1) and
// nothing else of Kubernetes. docs/design/ledger.md is the same for users.
//
// In reading order: observe.go (the content of a pod's status), ledger.go and cursor.go (what of that is new),
// judge.go (what an end of a container was), effective_limit.go and clock.go (at which limit and when), counters.go
// and agents.go (the kernel's counter and the agents of nodes, who see other kills, or the same ones otherwise),
// bounds.go, encode.go and pack.go (how it is stored, and how much).
//
// A stall is what happens to some containers instead of a kill: stall_watch.go and stall_interval.go find it in
// samples, and stalls.go files it beside the kills, because both ask for a higher limit ([Ledger.KillsAndStalls]).
package oom
