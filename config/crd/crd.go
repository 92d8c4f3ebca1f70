// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd has the generated CustomResourceDefinitions, so that programs check files by the API server's schema.
package crd

import _ "embed"

// MemoryProfiles is that of a MemoryProfile.
//
//go:embed bases/memfit.dev_memoryprofiles.yaml
var MemoryProfiles []byte

// ClusterMemoryProfiles is that of a ClusterMemoryProfile.
//
//go:embed bases/memfit.dev_clustermemoryprofiles.yaml
var ClusterMemoryProfiles []byte
