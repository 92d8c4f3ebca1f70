// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload decides how to size the containers of one workload. The reconciler in controllers/workload calls
// [Step] with the previous state, a [Snapshot] of the workload with its events, and the time. Step returns the next
// state and the [Effects]: a status, Events, and actions on pods. The package performs no I/O.
//
// In reading order: snapshot.go and pending_events.go (the input), step.go (the order of processing), instance.go and
// state.go (the state), evidence.go (the data about each program), decide.go and container.go (the decisions),
// new_pods.go (the size of new pods), rollout.go (the input of internal/rollout and internal/drift), conditions.go,
// status.go and events.go (the reports), checkpoint.go (storage), schedule.go (when the next step is due).
package workload
