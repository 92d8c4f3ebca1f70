// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package admissionpolicy says a profile in the words of a MutatingAdmissionPolicy, for clusters (Kubernetes 1.36 and
// later) that want runtime settings without running memfit's webhook.
//
// It knows no runtime itself: it asks internal/inject what the profile would set on a container, for hundreds of
// limits, and finds the formula behind the answers. When the answers follow no formula that CEL can compute, or the
// formula misses one answer, it refuses instead of guessing. So a policy sets what the webhook would set, or nothing;
// what it leaves out is named in [Objects.LeftOut] and in docs/guide/gitops.md. Pure: equal input gives equal
// output.
package admissionpolicy
