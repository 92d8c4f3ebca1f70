// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout decides how running pods get the size that is recommended for them: which pod is resized or evicted
// next, when a change counts as done, and when it is rolled back. It is a state machine over values: what pods show and
// what is remembered go in, the next actions and the state to remember come out. It reads no clock and performs no I/O.
//
// The state is written before an action is carried out, and every decision starts from what pods show, so that memfit
// may be killed anywhere: an action that was written down and not done is done after the next decision, and one that
// was done is recognised as done.
//
// A decrease is tried out: in one pod first (the canary), which is watched; then in the rest, some at a time; an OOM
// kill or a restart storm at the new size rolls it back from every pod, and it is not tried again for a week. An
// increase needs no watching.
package before
