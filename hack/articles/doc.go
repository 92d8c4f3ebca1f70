// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command articles repeats the five articles that memfit was built from, on a real cluster: each program without
// memfit and with it. It measures the ratios that an article reports and compares them within a stated tolerance, does
// what memfit predicts and measures the result, and looks for what the author needed to know in the output of memfit's
// commands. It writes docs/evidence/articles.md with its pictures, and all output as text; it exits with 1 when a story
// differs. It needs a cluster with memfit, its agent and the images of the stories: make articles brings all.
//
// The programs are in programs/; a story is a value (story.go) that says what is done with one of them.
package main
