// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package runtimes tests internal/runtimes with real programs: a process with the environment that memfit sets in its
// pod starts, has the intended settings, and keeps the user's own values where these take precedence.
//
// It runs only with the build tag "runtimes" (`make test-runtimes`), because it fetches some 900 MB of Node.js, JDK,
// Go, Deno and Bun through npm, pip and go, once per cache. The expected values are from docs/guide/runtimes.md and not
// from the code, so that a wrong formula fails. There is no cgroup: how a runtime reacts to the limit that it reads
// itself is tested on a real node (test/e2e).
package runtimes
