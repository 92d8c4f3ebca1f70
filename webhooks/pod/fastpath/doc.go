// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package fastpath is everything of the pod webhook that exists for speed alone: a reader of what an API server sends
// about a new pod, a key by which replicas share one answer, and the text of that answer. Without it, package pod does
// the same with what controller-runtime decodes.
//
// Every pod of a cluster passes through the webhook, and most are nobody's business: decoding such a request with the
// usual machinery costs ten times what the decision costs. Here the bytes are walked once, only what is asked for is
// decoded, and for pods that nobody governs the walk ends with their metadata. Nothing that is returned refers to the
// bytes. Where the text has anything unusual the functions say so, and the framework decodes it the usual way: they are
// faster, never different.
//
// Anybody who reaches the webhook's port can send any bytes. Each function goes once over its text and allocates in
// proportion to it; what goes the usual way is first held to the bounds of package boundedjson. (That reads more of a
// pod than the functions here do, so it refuses a few that they read.)
package fastpath
