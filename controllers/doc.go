// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers watches pods, remembers what their memory did, and says what should change.
//
// The flow, in reading order:
//
//	PodSource  pod events become observations in the Inbox, at once and without blocking; a workload is queued
//	Collector  every usage interval, samples of governed containers go into the same inbox
//	           a workload of which there is nothing but samples absorbs them at once, and is stepped once a minute
//	Workload   one reconcile: gather, step, write the MemoryCheckpoint, then the MemoryRecommendation, events, and changes of pods
//	Profile    sums up the recommendations of one profile into its status
//
// step decides, on values. The MemoryCheckpoint holds the state that it returns, and is written once, under optimistic locking: an
// OOM kill is counted, and a change of pods is begun, in exactly one write. If that write fails nothing happened, and the events stay in the inbox.
// Everything after it is a projection that the next reconcile repeats. Nothing here writes a workload, a pod template or a spec.
package controllers
