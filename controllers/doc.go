// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers watches pods, remembers what their memory did, and says what should change.
//
// The flow, in reading order:
//
//	PodSource       pod events become observations in the Inbox's mailboxes, at once and without blocking; a workload is queued
//	Collector  every usage interval, samples of governed containers go into the same mailboxes
//	           a workload of which there is nothing but samples takes them in at once, and is looked at once a minute
//	Workload   one reconcile: collect the mail, decide, write the MemoryCheckpoint, then the MemoryRecommendation, then events
//	Profile    sums up the recommendations of one profile into its status
//
// The MemoryCheckpoint is the truth and is written first, under optimistic locking: an OOM kill is counted in exactly one write.
// If that write fails the mail goes back and nothing happened. Everything after it is a projection that the next reconcile repeats.
// Nothing here writes a workload, a pod template or a spec.
package controllers
