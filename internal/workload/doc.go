// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload decides about one workload. [Step] takes the previous state, a [Snapshot] of the workload with what
// happened since, and the time; it returns the next state and the [Effects]: a status, Events, and actions on pods. It
// reads and writes nothing else.
//
// In reading order: snapshot.go and pending_events.go (the input), step.go (the order of things), instance.go and
// state.go (what is remembered), evidence.go (what is known of each program), decide.go and container.go (what follows
// from it), new_pods.go (what new pods get), rollout.go (the input of internal/rollout and internal/drift),
// conditions.go, status.go and events.go (how it is reported), checkpoint.go (how it is stored), schedule.go (when the
// next step is due).
package workload
