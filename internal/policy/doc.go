// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy says of a pod which workload it belongs to and which profile governs it. Webhook and controllers ask
// the same [Resolver], so that they can never disagree.
//
// It writes nothing. [Resolver.ResolveCached] reads informer caches only; [Resolver.Resolve], for the webhook, asks the
// API server for an owner that the cache lacks, and [Resolver.ResolveKept], for reconciles, does so only where nothing
// was kept of the pod. Each owner that is gone is asked for once. Profiles are held as an immutable snapshot
// that is swapped when one changes: an answer takes no lock and costs a few map lookups, however many profiles there
// are.
package policy
