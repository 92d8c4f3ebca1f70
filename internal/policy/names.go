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

// maxName is the longest name the API server takes for a custom resource.
const maxName = 253

// RecordName is the name of a workload's MemoryRecommendation and MemoryCheckpoint: "deployment-web". Kinds that
// Kubernetes does not ship carry their group ("rollout.argoproj.io-web"), so that Volcano's Job and ours never share a
// record. Names that would be too long end in a hash of the whole, so that two long names stay two
// ("pod.group-4b2f..."); so do kinds of which another spelling has the same letters
// ("cloneset.apps.kruise.io-web-4b2f..."), because anybody may write any kind into an owner reference. The
// records of an identity have its name, which begins with a platform, not a kind, and ends in a hash. Those of a class
// of nodes begin with "nodeclass" ("nodeclass-log-m5-large-4b2f...").
func RecordName(w memory.WorkloadRef) string {
	if w.NodeClass != "" {
		return identity.ClassName(w)
	}
	if workloadkind.IsIdentity(w.APIVersion, w.Kind) {
		return w.Name
	}
	group := workloadkind.Group(w.APIVersion)
	kind, ours := strings.ToLower(w.Kind), ships(group, w.Kind)
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

// ships: the kind is one of those that memfit reads, which Kubernetes ships.
func ships(group, kind string) bool {
	k := workloadkind.InGroup(group, kind)
	return k != nil && k.Recorded()
}

// title: one capital at the start and none after it. Of all spellings with the same letters, only one is like that.
func title(kind string) bool {
	for i := range len(kind) {
		c := kind[i]
		if upper := c >= 'A' && c <= 'Z'; upper != (i == 0) || !upper && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return kind != ""
}

// hashedName names what no readable name is safe for. The part before the first dash has a dot, so it is not a kind
// that Kubernetes ships.
func hashedName(group string, w memory.WorkloadRef) string {
	whole, kind := group, strings.ToLower(w.Kind)
	if !owners.ValidName(kind) || strings.ContainsAny(kind, ".-") || len(kind) > 63 {
		kind = "kind"
	}
	if !owners.ValidName(group) || len(group) > 60 {
		group = "group"
	}
	sum := sha256.Sum256([]byte(whole + "\x00" + w.Kind + "\x00" + w.Name))
	name := kind + "." + group + "-"
	if owners.ValidName(w.Name) && len(w.Name) <= 80 {
		name += w.Name + "-"
	}
	return name + hex.EncodeToString(sum[:8])
}
