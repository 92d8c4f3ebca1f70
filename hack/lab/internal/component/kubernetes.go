// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package component

import (
	"fmt"
	"strings"
)

// Kubernetes is a version of Kubernetes that the lab can run.
type Kubernetes struct {
	minor   string // what people ask for
	Version string // what modfile requires; a test compares them
	modfile string // in modules/kubernetes
}

// versions are the pins. The first is the default: the minor version of memfit's own client libraries, so that their
// packages are compiled once; they are tested in that order. To add one: write its modfile beside the others and run
// `go mod tidy -modfile=1.X.mod` there.
var versions = []Kubernetes{
	// From v1.37.1 on with the fix of kubernetes/kubernetes#138760: a resize that reached a kubelet while the container
	// was down never reached the pod's cgroup.
	{"1.37", "v1.37.2", "1.37.mod"},
	{"1.36", "v1.36.3", "go.mod"},
	// Older ones that clusters still run.
	{"1.35", "v1.35.4", "1.35.mod"},
	{"1.34", "v1.34.4", "1.34.mod"},
}

// FindKubernetes finds the version that somebody asks for ("1.37", "v1.37.1"); empty is the usual one.
func FindKubernetes(wanted string) (Kubernetes, error) {
	wanted = strings.TrimPrefix(wanted, "v")
	var known []string
	for i, v := range versions {
		if wanted == v.minor || wanted == strings.TrimPrefix(v.Version, "v") || wanted == "" && i == 0 {
			return v, nil
		}
		known = append(known, v.minor)
	}
	return Kubernetes{}, fmt.Errorf("LAB_KUBERNETES=%s: the lab has no pins for this version of Kubernetes; it has %s",
		wanted, strings.Join(known, ", "))
}

// versionFlags are linker flags without which the API server calls itself v0.0.0, and clients refuse to talk to it.
func (k Kubernetes) versionFlags() string {
	const set = "-X k8s.io/component-base/version."
	major, minor, _ := strings.Cut(k.minor, ".")
	return set + "gitVersion=" + k.Version + " " + set + "gitMajor=" + major + " " + set + "gitMinor=" + minor
}
