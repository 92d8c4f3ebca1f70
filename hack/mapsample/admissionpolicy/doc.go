// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package admissionpolicy translates a profile into a MutatingAdmissionPolicy, for clusters (Kubernetes 1.36 and
// later) that want runtime settings without running memfit's webhook.
//
// It has no table of runtimes: it asks internal/inject what the profile would set on a container, for hundreds of
// limits, and fits a formula to the answers. It refuses when the answers follow no formula that CEL can compute, or
// the formula misses one answer. So a policy sets what the webhook would set, or nothing; what it leaves out is listed
// in [Objects.LeftOut] and in docs/guide/gitops.md. Pure: equal input gives equal output.
package admissionpolicy
