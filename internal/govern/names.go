// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package govern

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/memfit/memfit/internal/memory"
)

// maxName is the longest name the API server takes for a custom resource.
const maxName = 253

// RecordName is the name of a workload's MemoryRecommendation and MemoryCheckpoint: "deployment-web". Kinds that Kubernetes does
// not ship carry their group ("rollout.argoproj.io-web"), so that Volcano's Job and ours never share a record. Names that would
// be too long end in a hash of the whole, so that two long names stay two.
func RecordName(w memory.WorkloadRef) string {
	kind := w.Kind
	if group, _, found := strings.Cut(w.APIVersion, "/"); found && group != "apps" && group != "batch" {
		kind += "." + group
	}
	name := strings.ToLower(kind) + "-" + w.Name
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:5])
	return strings.TrimRight(name[:maxName-len(hash)-1], "-.") + "-" + hash
}

func partial(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	return m
}
