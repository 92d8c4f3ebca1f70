// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package soak runs up to two hundred small pods on the lab's nodes for the time SOAK, for example 60m. memfit tunes
// and resizes half of them and only watches the others. The test checks the growth of memfit's own memory, its count of
// kills against the kernel's log, and its writes. `make soak` prints the results; docs/evidence/soak.md has an
// evaluation. The test on a cluster needs the build tag e2e; unit tests of the calculations do not.
package soak
