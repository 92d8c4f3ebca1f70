// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package runtimes proves on real programs what internal/runtimes promises on paper: a process that gets exactly the
// environment memfit gives its pod starts, the setting inside the process is the intended one, and the user's value won
// where it has to.
//
// It runs only with the build tag "runtimes" (`make test-runtimes`), because it fetches some 900 MB of Node.js, JDK,
// Go, Deno and Bun through npm, pip and go, once per cache. What memfit should set is written here a second time, from
// docs/guide/runtimes.md and not from the code, so that a slip in a formula is seen. There is no cgroup: what a
// runtime makes of the limit it sees itself is not tested here but on a real node (test/e2e).
package runtimes
