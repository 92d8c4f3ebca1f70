// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload is the reconciler of workloads: it collects events of pods, decides, and carries out changes.
//
// The flow, in reading order:
//
//	pod_source.go   stores pod events as observations in the inbox, without blocking, and queues the workload
//	schedule.go     decides when the next step is due; until then, samples are absorbed into the state
//	gather.go       reads pods, the profiles that govern them, and what else bounds or changes their memory
//	checkpoint.go   loads the state, and stores the next state in one write
//	publish.go      writes the MemoryRecommendation
//	event_writer.go writes a limited number of Events on pods and workloads
//	act.go          changes running pods
//
// [workload.Step] is a pure function that decides and returns the next state. The MemoryCheckpoint stores this state in
// one write with optimistic locking, so an OOM kill is counted once, and a change of pods starts once. If the write
// fails, nothing has happened, and the events remain in the inbox. The next reconcile repeats whatever fails after the
// write. This package never changes workloads or pod templates.
//
// [workload.Step]: github.com/memfit/memfit/internal/workload.Step
package workload
