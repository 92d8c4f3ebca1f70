// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command articles repeats the five articles that memfit was built from, on a real cluster: each program without
// memfit and with it. It compares the ratios that an article reports with the measured ones, compares memfit's
// predictions with results, and checks that the output of memfit's commands has the facts that the author needed.
// It writes docs/evidence/articles.md with its pictures, and all output as text; it exits with 1 when a story differs.
// It needs a cluster with memfit, its agent and the images of the stories; make articles sets these up.
//
// The programs are in programs/; a story is a value (story.go) that specifies what is done with one of them.
package main
