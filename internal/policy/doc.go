// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy resolves a pod's workload and profile. Webhook and controllers share one [Resolver], so that they
// never disagree.
//
// It writes nothing. [Resolver.ResolveCached] reads only informer caches; [Resolver.Resolve], for the webhook, reads an
// owner missing in the cache from the API server, and [Resolver.ResolveKept], for reconciles, only without an earlier
// resolution. Each deleted owner is read once. Profiles are an immutable snapshot that is swapped on changes: a
// resolution takes no lock and a few map lookups, for any number of profiles.
package policy
