// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command backtest replays memory traces against sizing policies - memfit's own code, the Vertical Pod Autoscaler's own
// Go packages, a clairvoyant and a naive rule - in one simulator, and prints OOM kills and unused memory of each. It
// reads traces from a directory and writes plots to another; equal input gives equal output. The rules of the simulator
// and their limits are in docs/evidence/backtest.md.
package main
