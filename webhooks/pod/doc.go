// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package pod is the webhook for new pods: it applies their profile.
//
// It never keeps a pod from starting. After any error the pod is admitted unchanged, with a warning for the user and a
// metric for the operator. Pods are also admitted unchanged while another admission policy seems to refuse memfit's
// changes ([Trials]). It writes only Events, and changes only the pod.
//
// [Injector] answers AdmissionReviews. It checks that JSON is within bounds before it decodes a pod: the metadata of
// every pod, and the spec only of pods that a profile governs.
package pod
