// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package informers configures the informer caches: which objects have one, what is dropped from them before they are
// kept, and what replicas share.
package informers
