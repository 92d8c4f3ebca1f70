// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout decides how running pods get their recommended size: which pod is resized or evicted next, when a
// change counts as done, and when it is rolled back. Package workload calls [Observe] and then [Decide] with the pods
// and the stored state. They return actions and the next state; they read no clock and perform no I/O.
//
// The caller stores the state before it sends an action. So memfit may be killed at any time: the next decision
// compares the stored state with the pods, and sends the actions that the pods do not show yet.
//
// A lower limit is first set on one pod (the canary), which is watched. Then the other pods follow, some at a time. A
// kill or repeated restarts roll the limit back on every pod for a week. A raised limit is not watched.
package rollout
