// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package pod is the webhook for new pods: it applies their profile.
//
// It never keeps a pod from starting. After any error the pod is admitted unchanged, with a warning for the user and a
// metric for the operator. It also admits the pods of a workload unchanged if none was created after memfit changed
// them ([Trials]). It reads informer caches, writes only Events, and changes only the pod.
//
// [Injector] answers reviews. It checks the bounds of pods before it decodes them: metadata always, and the spec if a
// profile governs the pod.
package pod
