// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package inject decides which settings and sizes memfit writes into a pod, and why ([MakePlan]). The webhook applies
// the plan as a JSON patch ([Plan.Patch]); controllers and the CLI compare running pods with it.
//
// A pod that starts without memfit also starts with it, because no possible version of its runtime refuses a setting.
// The user's values win, flag by flag, and memfit later changes only its own. Planning is idempotent, before or after
// other webhooks, and uses no client, log or clock.
package inject
