// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

// The API server takes any text as the kind, API version and name of an owner. A reference that no object could have
// is ignored: names of records and events are made of these, and the API server would always refuse them.
const (
	mostName  = 253 // of an object, and of an API group
	mostKind  = 63
	mostGroup = mostName + 1 + 63 // with a version
)

// plausible reports whether an object could have the reference.
func plausible(ref *metav1.OwnerReference) bool {
	if len(ref.APIVersion) > mostGroup || !ValidName(ref.Name) || !validKind(ref.Kind) {
		return false
	}
	group, version, found := strings.Cut(ref.APIVersion, "/")
	if !found {
		group, version = "", group
	}
	if workloadkind.IsIdentity(ref.APIVersion, ref.Kind) { // a forged one would take part in the evidence of others
		return false
	}
	return (group == "" || ValidName(group)) && ValidName(version)
}

// Plausible reports whether there can be an object that a workload is.
func Plausible(w memory.WorkloadRef) bool {
	return plausible(&metav1.OwnerReference{APIVersion: w.APIVersion, Kind: w.Kind, Name: w.Name})
}

// ValidName reports whether the API server takes a name for a custom resource, or for most others: a DNS subdomain.
// It is written out because it is asked of several names of each new pod: the regular expression of apimachinery takes
// some 10 % of the time of a pod that no profile governs.
func ValidName(name string) bool {
	if name == "" || len(name) > mostName {
		return false
	}
	border := true // the start, or after a dot: no dash, no dot
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			border = false
		case c == '-' && !border:
			if i+1 == len(name) || name[i+1] == '.' {
				return false
			}
		case c == '.' && !border:
			border = true
		default:
			return false
		}
	}
	return !border
}

func validKind(kind string) bool {
	for i := range len(kind) {
		c := kind[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return kind != "" && len(kind) <= mostKind
}
