// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package review reads what an API server sends about a new pod, and no more of it than memfit needs.
//
// Every pod of a cluster passes through the webhook, and most are nobody's business: decoding such a request with the usual
// machinery costs ten times what the decision costs. Here the bytes are walked once, only what is asked for is decoded, and for pods
// that nobody governs the walk ends with their metadata. Nothing that is returned refers to the bytes. Where the text has anything
// unusual the functions say so, and the caller decodes it the usual way: they are faster, never different. Pure.
//
// Anybody who reaches the webhook's port can send any bytes. Each function goes once over its text and allocates in proportion to it, and
// [Decode] refuses what the usual way would choke on: quantities that take minutes to read, and texts of nearly empty items, which become
// hundreds of times larger in memory. (It reads more of a pod than the functions here do, so it refuses a few that they read.)
package review
