// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package soak runs up to two hundred small governed pods on the lab's nodes for as long as one likes, half of them
// tuned and resized by memfit and half only watched, and holds memfit to figures: the slope of its own memory with its
// interval, its count of kills beside the kernel's own log, its writes. `make soak` prints one table; SOAK=60m says for
// how long; docs/evidence/soak.md has what was found. The tests of a node need the build tag e2e; what they compute
// with is tested without one.
package soak
