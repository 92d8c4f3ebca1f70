// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group; annotation keys begin with it.
const Group = "memfit.dev"

var (
	// GroupVersion is memfit.dev/v1alpha1.
	GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers this version's kinds.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&MemoryProfile{}, &MemoryProfileList{},
		&ClusterMemoryProfile{}, &ClusterMemoryProfileList{},
		&MemoryRecommendation{}, &MemoryRecommendationList{},
		&MemoryCheckpoint{}, &MemoryCheckpointList{},
		&MemorySnapshot{}, &MemorySnapshotList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
