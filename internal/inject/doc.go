// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package inject decides what memfit sets on a pod and why ([MakePlan]), and the patch that does it ([Plan.Patch]).
//
// It promises three things. A pod that started before also starts after: nothing goes in that a runtime version may
// refuse. What the user set wins, flag by flag, and only what memfit wrote itself is ever changed again. Doing it
// twice, before or after other webhooks, gives the same pod. The package touches nothing but the pod it is given: no
// client, no log, no clock.
package inject
