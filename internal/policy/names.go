// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/owners"
	"github.com/memfit/memfit/internal/workloadkind"
)

// maxName is the longest valid name of a custom resource.
const maxName = 253

// RecordName returns the name of a workload's MemoryRecommendation and MemoryCheckpoint: "deployment-web". Names of
// kinds outside of Kubernetes include the group ("rollout.argoproj.io-web"). Names that are too long or could collide
// end in a hash ("pod.group-4b2f..."): an owner reference may have any kind, even two that differ only in upper case.
// Records of an identity have its name. Records of a class of nodes begin with "nodeclass"
// ("nodeclass-log-m5-large-4b2f...").
func RecordName(w memory.WorkloadRef) string {
	if w.NodeClass != "" {
		return identity.ClassName(w)
	}
	if workloadkind.IsIdentity(w.APIVersion, w.Kind) {
		return w.Name
	}
	group := workloadkind.Group(w.APIVersion)
	kind, known := strings.ToLower(w.Kind), workloadkind.InGroup(group, w.Kind)
	ours := known != nil && known.Recorded() // memfit reads the kind and Kubernetes ships it
	if !ours && (!title(w.Kind) || !owners.ValidName(group) || strings.Contains(group, "-")) {
		return hashedName(group, w)
	}
	if !ours {
		kind += "." + group
	}
	if name := kind + "-" + w.Name; len(name) <= maxName {
		return name
	}
	return hashedName(group, w)
}

// title reports whether only the first letter is upper case. Two such kinds do not become equal in lower case.
func title(kind string) bool {
	for i := range len(kind) {
		c := kind[i]
		if upper := c >= 'A' && c <= 'Z'; upper != (i == 0) || !upper && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return kind != ""
}

// hashedName returns a name for objects whose plain names could collide. The dot before the first dash distinguishes it
// from names of built-in kinds.
func hashedName(group string, w memory.WorkloadRef) string {
	sum := sha256.Sum256([]byte(group + "\x00" + w.Kind + "\x00" + w.Name))
	kind := strings.ToLower(w.Kind)
	if !owners.ValidName(kind) || strings.ContainsAny(kind, ".-") || len(kind) > 63 {
		kind = "kind"
	}
	if !owners.ValidName(group) || len(group) > 60 {
		group = "group"
	}
	name := kind + "." + group + "-"
	if owners.ValidName(w.Name) && len(w.Name) <= 80 {
		name += w.Name + "-"
	}
	return name + hex.EncodeToString(sum[:8])
}
