// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload is the reconciler of workloads: it collects events of pods, decides, and carries out changes.
//
// The flow, in reading order:
//
//	pod_source.go   pod events become observations in the inbox, immediately and without blocking; a workload is queued
//	schedule.go     when the next step is due; samples alone are absorbed until then
//	gather.go       pods, the profiles that govern them, and what else bounds or changes their memory
//	checkpoint.go   the state from before, and the one write that counts
//	publish.go      the MemoryRecommendation
//	event_writer.go Events on pods and workloads, within bounds
//	act.go          changes of running pods
//
// [workload.Step] decides, on values. The MemoryCheckpoint stores the state that it returns, in one write with
// optimistic locking: exactly one write counts an OOM kill or starts a change of pods. If it fails nothing happened,
// and the events remain in the inbox. Everything after it is a projection that the next reconcile repeats. Nothing here
// writes a workload, a pod template or a spec.
//
// [workload.Step]: github.com/memfit/memfit/internal/workload.Step
package workload
