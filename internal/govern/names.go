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
	"github.com/memfit/memfit/internal/owners"
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

// WorkloadNamed is the workload whose record has a name, for kinds that memfit reads: the inverse of [RecordName]. Long names, in which a
// hash may stand for the rest, are nobody's.
func WorkloadNamed(namespace, name string) (memory.WorkloadRef, bool) {
	kind, workload, found := strings.Cut(name, "-")
	if !found || workload == "" || len(name) > maxInverted {
		return memory.WorkloadRef{}, false
	}
	for _, gvk := range recorded() {
		if strings.ToLower(gvk.Kind) == kind {
			return memory.WorkloadRef{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: namespace, Name: workload}, true
		}
	}
	return memory.WorkloadRef{}, false
}

// maxInverted is shorter than any name that ends in a hash, unless forty dashes stood before it.
const maxInverted = maxName - 40

// recorded are the kinds of workload that memfit reads.
func recorded() []schema.GroupVersionKind {
	all := []schema.GroupVersionKind{{Version: "v1", Kind: "Pod"}}
	for i := range owners.Kinds {
		all = append(all, owners.Kinds[i].GVK)
	}
	return all
}

func partial(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	return m
}
