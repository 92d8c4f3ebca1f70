// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy finds a pod's workload and profile. Webhook and controllers share one [Resolver] and thus agree.
//
// It writes nothing. [Resolver.ResolveCached] reads only informer caches. [Resolver.Resolve], for the webhook, also
// reads an owner that is missing in the cache from the API server; [Resolver.ResolveRemembered], for reconciles, does
// so only without an earlier resolution. A deleted owner is read only once. Profiles are an immutable snapshot,
// replaced on changes: a resolution takes no lock and a few map lookups, for any number of profiles.
package policy
