// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package scan reads the containers of a node as often as each deserves, feeds their recorders, and hands snapshots of
// their pods over to be written. What is read, watched and written comes through interfaces; time comes as an
// argument of [Loop.Tick].
package scan
