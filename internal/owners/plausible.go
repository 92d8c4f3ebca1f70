// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Bounds of an owner reference. The API server accepts any text in a reference, but would refuse records and Events
// that memfit names after it. So memfit ignores references that exceed the bounds.
const (
	maxName  = 253 // of an object, and of an API group
	maxKind  = 63
	maxGroup = maxName + 1 + 63 // with a version
)

// plausible reports whether the referenced object can exist.
func plausible(ref *metav1.OwnerReference) bool {
	if len(ref.APIVersion) > maxGroup || !ValidName(ref.Name) || !validKind(ref.Kind) {
		return false
	}
	group, version, found := strings.Cut(ref.APIVersion, "/")
	if !found {
		group, version = "", group
	}
	if workloadkind.IsIdentity(ref.APIVersion, ref.Kind) { // a forged identity would mix with other workloads' evidence
		return false
	}
	return (group == "" || ValidName(group)) && ValidName(version)
}

// Plausible reports whether the object of a workload can exist.
func Plausible(w memory.WorkloadRef) bool {
	return plausible(&metav1.OwnerReference{APIVersion: w.APIVersion, Kind: w.Kind, Name: w.Name})
}

// ValidName reports whether a name is valid for a custom resource and most other objects: a DNS subdomain. Each
// admission calls it several times. apimachinery's regular expression would take about 10 % of the time of an admission
// without a profile.
func ValidName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	labelStart := true // the start, or after a dot: no dash, no dot
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			labelStart = false
		case c == '-' && !labelStart:
			if i+1 == len(name) || name[i+1] == '.' {
				return false
			}
		case c == '.' && !labelStart:
			labelStart = true
		default:
			return false
		}
	}
	return !labelStart
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
