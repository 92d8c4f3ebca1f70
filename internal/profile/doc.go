// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package profile finds the MemoryProfile of a pod ([Index.Match]) and the profile's policy for one of its containers
// ([Profile.Container]), with inherited defaults ([Inherit]). It reads no cluster and no clock: profiles and
// annotations are arguments, so that webhook, controllers and the offline command decide equally.
package profile
