// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package profile answers two questions about a pod: which MemoryProfile governs it ([Index.Match]) and what that
// profile says about one of its containers ([Profile.Container]), with what it inherits from others ([Inherit]). It
// reads no cluster and no clock: profiles and annotations arrive as arguments, so that webhook, controllers and the
// offline command decide alike.
package profile
