// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the memfit.dev/v1alpha1 API: what people write ([MemoryProfile], [ClusterMemoryProfile]), what
// memfit answers ([MemoryRecommendation]) and what memfit remembers ([MemoryCheckpoint]). It holds types, keys and
// reasons, and no logic. The field comments are the manual: kubectl explain prints them.
//
// +kubebuilder:object:generate=true
// +groupName=memfit.dev
package v1alpha1
