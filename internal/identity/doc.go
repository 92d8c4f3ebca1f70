// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity finds out which pods are of one kind although each has an owner of its own: steps of pipelines and
// workflows, runners, executors, sandboxes. What it finds replaces the owner as the workload of such a pod: its
// history, kills, recommendation and canary are kept under the identity.
//
// An identity is found from a table of platforms ([Platforms]) or from labels that a profile names. Both are written by
// users who may create pods, so an identity never proves anything: the namespace is part of it, and every bound of a
// profile holds for it.
//
// A DaemonSet outlives its pods, but these differ by node: [InClass] adds the class of a pod's node to the workload.
// The package is pure.
package identity
