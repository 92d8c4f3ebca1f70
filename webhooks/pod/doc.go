// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package pod is the webhook for new pods: it gives them what their profile says.
//
// It never stands between a pod and its start. Whatever goes wrong here, the pod is admitted as it came, with a warning
// for the person who reads and a metric for the one who is on call. It reads informer caches, writes nothing, and
// touches only the pod.
//
// [Injector] is a handler of controller-runtime; [Handler] holds what clients send to bounds before it is decoded.
package pod
