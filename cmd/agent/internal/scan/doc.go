// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package scan reads the containers of a node, more often near their limits, feeds their recorders, and submits
// snapshots of their pods. It reads, watches and writes through interfaces; time is an argument of [Loop.Tick].
package scan
