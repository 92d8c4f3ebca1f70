// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package inject decides what memfit sets on a pod and why ([MakePlan]), and returns the patch ([Plan.Patch]).
//
// It guarantees three properties. A pod that starts without memfit also starts with it: no setting may be refused by
// any version of the runtime. The user's values win, flag by flag, and memfit later changes only its own. It is
// idempotent, before or after other webhooks. It uses no client, log or clock.
package inject
