// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"regexp"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Kubernetes ends generated names with five of these characters and makes hashes of pod templates of up to ten. They
// have no vowels and similar characters, which distinguishes most names of users from generated ones.
const generated = `[bcdfghjklmnpqrstvwxz2456789]`

// longestBase is the longest part of a name in a generated one: 63 characters less the five added ones.
const longestBase = 58

// podPattern returns a regular expression, anchored by Prometheus, for the names of all pods a workload ever had,
// without owner references, because these pods may be deleted. Pods of workloads whose names differ by a hash-like
// ending ("web" and "web-2b4c6d") can be confused.
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

// pattern returns name, the part between (at most room characters, except unused indexes), and five generated
// characters. Kubernetes truncates too long names.
func pattern(name, between string, room int) string {
	if len(name)+room+len("-") <= longestBase {
		return regexp.QuoteMeta(name) + between + "-" + generated + "{5}"
	}
	// A little less than the least rest of a name: those of indexed Jobs are cut further, for the index.
	kept := longestBase - min(room, len("-99999-"))
	return regexp.QuoteMeta(name[:min(len(name), kept)]) + "[a-z0-9.-]*" + generated + "{5}"
}
