// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

// The API server accepts any text as kind, API version and name of an owner, but would refuse names of records and
// Events derived from impossible ones, which are ignored.
const (
	maxName  = 253 // of an object, and of an API group
	maxKind  = 63
	maxGroup = maxName + 1 + 63 // with a version
)

// plausible reports whether an object could have the reference.
func plausible(ref *metav1.OwnerReference) bool {
	if len(ref.APIVersion) > maxGroup || !ValidName(ref.Name) || !validKind(ref.Kind) {
		return false
	}
	group, version, found := strings.Cut(ref.APIVersion, "/")
	if !found {
		group, version = "", group
	}
	if workloadkind.IsIdentity(ref.APIVersion, ref.Kind) { // a forged one would join the evidence of others
		return false
	}
	return (group == "" || ValidName(group)) && ValidName(version)
}

// Plausible reports whether the object of a workload can exist.
func Plausible(w memory.WorkloadRef) bool {
	return plausible(&metav1.OwnerReference{APIVersion: w.APIVersion, Kind: w.Kind, Name: w.Name})
}

// ValidName reports whether a name is valid for a custom resource and most other objects: a DNS subdomain. It checks
// several names of each new pod: apimachinery's regular expression takes some 10 % of the time of one without a
// profile.
func ValidName(name string) bool {
	if name == "" || len(name) > maxName {
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
	return kind != "" && len(kind) <= maxKind
}
