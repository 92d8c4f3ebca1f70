// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"regexp"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Kubernetes ends generated names with five of these characters and makes hashes of pod templates of up to ten. They
// leave out vowels and similar characters, which distinguishes most names that users chose from generated ones.
const generated = `[bcdfghjklmnpqrstvwxz2456789]`

// longestBase is how much of a name survives in a generated one: 63 characters less the five that are added.
const longestBase = 58

// podPattern is a regular expression, anchored by Prometheus, for the names of all pods a workload ever had. It has to
// do without owner references: what Prometheus remembers is long gone from the cluster. The pods of a workload whose
// name is that of another with a hash-like ending ("web" and "web-2b4c6d") can be mixed up.
func podPattern(w memory.WorkloadRef) string {
	switch workloadkind.Like(w.APIVersion, w.Kind).PodNames {
	case workloadkind.SameName:
		return regexp.QuoteMeta(w.Name)
	case workloadkind.Ordinal:
		return regexp.QuoteMeta(w.Name) + "-[0-9]+"
	case workloadkind.Generated:
		return pattern(w.Name, "", 0)
	case workloadkind.GeneratedWithIndex:
		return pattern(w.Name, "(-[0-9]+)?", 6) // indexed Jobs have the index in between
	case workloadkind.GeneratedWithTime:
		return pattern(w.Name, "-[0-9]{8,}(-[0-9]+)?", 15) // minutes since 1970 in between
	case workloadkind.GeneratedWithHash:
		return pattern(w.Name, "-"+generated+"{1,10}", 11) // the ReplicaSet's hash in between
	default:
		return pattern(w.Name, "(-"+generated+"{1,10})?", 11)
	}
}

// pattern is name, what comes in between - of at most room characters, but for indexes that are not used - and five
// generated characters. Kubernetes cuts the end of names that are too long.
func pattern(name, between string, room int) string {
	if len(name)+room+len("-") <= longestBase {
		return regexp.QuoteMeta(name) + between + "-" + generated + "{5}"
	}
	// A little less than what must be left of the name: those of indexed Jobs are cut further, for the index.
	kept := longestBase - min(room, len("-99999-"))
	return regexp.QuoteMeta(name[:min(len(name), kept)]) + "[a-z0-9.-]*" + generated + "{5}"
}
