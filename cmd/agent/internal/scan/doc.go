// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package scan is the agent's main loop, [Loop.Tick]: it reads the memory of a node's containers, more often near their
// limits, adds the readings to flight recorders, and submits snapshots of the pods. It has no clock of its own.
package scan
