// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout decides how running pods get their recommended size: which pod is resized or evicted next, when a
// change counts as done, and when it is rolled back. It is a state machine: pods and stored state are the input,
// actions and the next state the result. It reads no clock and performs no I/O.
//
// The state is stored before an action is sent, and every decision begins with the pods, so memfit may be killed at any
// time: the next decision sends an action that was not sent, and finds a sent action in the pods.
//
// A lower limit begins with one pod (the canary), which is watched; then the others follow, some at a time. A kill or
// repeated restarts roll it back from every pod for a week. A raise is not watched.
package rollout
