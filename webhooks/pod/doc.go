// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package pod is the webhook for new pods: it gives them what their profile says.
//
// It never stands between a pod and its start. Whatever goes wrong here, the pod is admitted as it came, with a warning
// for the person who reads and a metric for the one who is on call. It reads informer caches, writes only Events, and
// touches only the pod. What it gives is withdrawn for a while when the pods do not come, as where a policy refuses it
// ([Trials]).
//
// [Injector] answers reviews. What is decoded of a pod is held to bounds first: its metadata, and its spec if a profile
// governs it.
package pod
