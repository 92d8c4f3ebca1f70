// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package admissionpolicy translates a profile into a MutatingAdmissionPolicy, for clusters (Kubernetes 1.36 and
// later) that want runtime settings without running memfit's webhook.
//
// It has no table of runtimes: it computes with internal/inject what the profile would set on a container, for hundreds
// of limits, and fits a formula to these values. A variable whose values follow no such formula is omitted. So a policy
// sets the value that the webhook would set, or nothing; [Objects.LeftOut] and docs/guide/gitops.md list what it omits.
// Pure: equal input gives equal output.
package admissionpolicy
