// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package rescue decides whether a container that is about to reach its memory limit gets a loan before the kernel
// kills it. The agent of a node predicts ([Watch]); the manager decides ([Decide]) and ends the loan ([Loan.Settle]).
// An alarm is a claim of a node: Decide compares it with the manager's data, and refuses if in doubt. The package reads
// no clock and performs no I/O: equal input gives equal output.
//
// Read alarm.go, predict.go, decide.go, loan.go.
package rescue
