// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the memfit.dev/v1alpha1 API. Users write [MemoryProfile] and [ClusterMemoryProfile]; memfit
// publishes [MemoryRecommendation] and keeps its state in [MemoryCheckpoint]; its agents write [MemorySnapshot].
// kubectl explain prints the field comments.
//
// +kubebuilder:object:generate=true
// +groupName=memfit.dev
package v1alpha1
