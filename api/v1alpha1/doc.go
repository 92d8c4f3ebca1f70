// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the memfit.dev/v1alpha1 API: users write [MemoryProfile] and [ClusterMemoryProfile], memfit
// publishes [MemoryRecommendation] and keeps its state in [MemoryCheckpoint]. It holds types, keys and reasons, and no
// logic. kubectl explain prints the field comments.
//
// +kubebuilder:object:generate=true
// +groupName=memfit.dev
package v1alpha1
