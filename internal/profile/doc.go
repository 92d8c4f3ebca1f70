// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package profile finds the MemoryProfile of a pod ([Index.Match]) and the profile's policy for one of its containers
// ([Profile.Container]), with inherited defaults ([Inherit]). It performs no I/O and reads no clock, so that webhook,
// controllers and offline commands get the same results.
package profile
