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
	minor   string // such as 1.37
	Version string // the version that modfile requires
	modfile string // a file in modules/kubernetes
}

// versions are the pinned versions, in the order in which they are tested. The first is the default. It has the minor
// version of memfit's client libraries, so that shared packages are compiled once. To add a version, write its modfile
// next to the others and run `go mod tidy -modfile=1.X.mod` there.
var versions = []Kubernetes{
	// v1.37.1 and later have the fix of kubernetes/kubernetes#138760: a resize while the container was not running was
	// never applied to the pod's cgroup.
	{"1.37", "v1.37.2", "1.37.mod"},
	{"1.36", "v1.36.3", "go.mod"},
	// Older versions that clusters still run.
	{"1.35", "v1.35.4", "1.35.mod"},
	{"1.34", "v1.34.4", "1.34.mod"},
}

// FindKubernetes returns the wanted version, for example "1.37" or "v1.37.2". An empty string selects the default.
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

// versionFlags returns linker flags that set the version. Clients reject an API server without them, which reports
// v0.0.0.
func (k Kubernetes) versionFlags() string {
	const set = "-X k8s.io/component-base/version."
	major, minor, _ := strings.Cut(k.minor, ".")
	return set + "gitVersion=" + k.Version + " " + set + "gitMajor=" + major + " " + set + "gitMinor=" + minor
}
