// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/profile"
)

// State says how a pod that exists compares with what its profile would set on it today.
type State string

// The states.
const (
	// UpToDate: it has what the profile would set.
	UpToDate State = "UpToDate"
	// Stale: memfit injected it, but would set something else today.
	Stale State = "Stale"
	// Missed: memfit never saw it: created before the profile, or while the webhook was away.
	Missed State = "Missed"
	// Skipped: every setting is left alone for a reason.
	Skipped State = "Skipped"
	// Off: the profile sets nothing (tuning.mode Off or DryRun).
	Off State = "Off"
)

// Compare says in which state a running pod is, and why, in words for a status message.
func Compare(_ *corev1.Pod, _ *profile.Named) (State, string) { return Off, "" }
