// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package profilestatus says what the status of a profile tells: its workloads, summed up, and its conditions. It reads
// no clock and performs no I/O.
package profilestatus
