// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package rescue decides whether memfit raises the limit of a container that is about to reach it. The agent of a node
// predicts ([Watch]) and sends an [Alarm]; the manager decides ([Decide]) and ends the raise, a [Loan] ([Loan.Settle]).
// An alarm is a claim of a node: Decide compares it with the manager's data, and refuses if in doubt. The package reads
// no clock and performs no I/O.
//
// Read alarm.go, predict.go, decide.go, loan.go.
package rescue
