// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhooks is the admission edge: it gives new pods what their profile says, and tells authors of profiles what they
// will not get.
//
// It never stands between a pod and its start. Whatever goes wrong here, the pod is admitted as it came, with a warning for the
// person who reads and a metric for the one who is on call. It reads informer caches, writes nothing, and touches only the pod.
package webhooks
