// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command articles tells the five stories that memfit was made from, on a real cluster: each program as its author met
// it, without memfit and with it. What an article reports as a ratio is measured again and compared within a stated
// tolerance; what memfit predicts is done, and measured; what `kubectl describe` and `kubectl memfit why` say at the
// moment at which the author would have looked is kept. From that it writes docs/articles.md with its pictures and an
// HTML report, and it exits with 1 when a story does not come out. It needs a cluster with memfit, its agent and the
// images of the stories: make articles brings all.
//
// The programs are in programs/; a story is a value (story.go) that says what is done with one of them.
package main
