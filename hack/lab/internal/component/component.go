// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package component builds the programs a Kubernetes node is made of from pinned Go modules, and keeps them in a cache.
//
// A component is one upstream project, pinned by a Go module of ours (hack/lab/modules); its binaries share one cache
// entry, named by a hash of everything that determines their bytes.
package component

import (
	"cmp"
	"path"
	"slices"
)

// Component is one pinned module and the binaries built from it.
type Component struct {
	Name     string   // the folder below hack/lab/modules, unless Module says another
	Module   string   // the folder of a component whose pins it shares
	Modfile  string   // the file of pins in that folder; empty: go.mod
	Binaries []Binary // built in this order
	Files    []File   // copied out of the pinned modules
	LDFlags  string
	Tags     string
	CGO      bool
}

func (c Component) module() string { return cmp.Or(c.Module, c.Name) }

// File is what a node needs of a module besides its programs: the files that match Glob in Module, one after the other.
type File struct {
	Name, Module, Glob string
}

// Binary is one main package.
type Binary struct {
	Name    string
	Package string
	Names   []string // what it runs as, by the name of its file; empty: Name
}

func (b Binary) names() []string {
	if len(b.Names) == 0 {
		return []string{b.Name}
	}
	return b.Names
}

// All lists every component in the order in which a person waits for them: what tests of the operator need comes first.
func All(kubernetes Kubernetes) []Component {
	return []Component{
		{
			Name:    "kubernetes",
			Modfile: kubernetes.modfile,
			Binaries: []Binary{
				{Name: "kube-apiserver", Package: "./apiserver"},
				{Name: "kubectl", Package: "./kubectl"},
				{Name: "kubernetes", Package: ".", Names: []string{"kubelet", "kube-controller-manager", "kube-scheduler"}},
			},
			LDFlags: "-s -w " + kubernetes.versionFlags(),
		},
		{
			Name:     "etcd",
			Binaries: []Binary{{Name: "etcd", Package: "go.etcd.io/etcd/server/v3"}},
			LDFlags:  "-s -w",
		},
		{
			Name: "containerd",
			Binaries: packages(
				"github.com/containerd/containerd/v2/cmd/containerd",
				"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
				"github.com/containerd/containerd/v2/cmd/ctr",
			),
			LDFlags: "-s -w",
			Tags:    "no_btrfs no_devmapper no_zfs", // snapshotters that need C headers or tools, and that the lab never uses
		},
		{
			Name:     "runc",
			Binaries: packages("github.com/opencontainers/runc"),
			// Static, so that a cached runc still runs on a machine without libseccomp.
			LDFlags: "-s -w -linkmode external -extldflags -static",
			// Without seccomp every pod fails with "seccomp: config provided but seccomp not supported". The other two
			// keep the C library's resolver out of the static binary.
			Tags: "seccomp netgo osusergo",
			CGO:  true,
		},
		{
			Name:   "cni",
			Module: "runc",
			Binaries: packages(
				"github.com/containernetworking/plugins/plugins/ipam/host-local",
				"github.com/containernetworking/plugins/plugins/main/bridge",
			),
			LDFlags: "-s -w",
		},
		{
			Name:     CertManager,
			Binaries: []Binary{{Name: "cert-manager", Package: "."}},
			Files: []File{
				{Name: "cert-manager-crds.yaml", Module: "github.com/cert-manager/cert-manager", Glob: "deploy/crds/*.yaml"},
			},
			LDFlags: "-s -w",
		},
	}
}

// CertManager is the component that a lab may leave out: memfit then manages its certificates itself.
const CertManager = "cert-manager"

// Without returns the components but for the one of a name.
func Without(all []Component, name string) []Component {
	return slices.DeleteFunc(slices.Clone(all), func(c Component) bool { return c.Name == name })
}

// Select keeps the binaries that run under these names, in the order of all. It returns the names it does not know.
func Select(all []Component, names []string) (selected []Component, unknown []string) {
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	for _, c := range all {
		var kept []Binary
		for _, b := range c.Binaries {
			if slices.ContainsFunc(b.names(), func(name string) bool { return wanted[name] }) {
				kept = append(kept, b)
				for _, name := range b.names() {
					delete(wanted, name)
				}
			}
		}
		if len(kept) > 0 {
			c.Binaries = kept
			selected = append(selected, c)
		}
	}
	for _, name := range names {
		if wanted[name] {
			unknown = append(unknown, name)
		}
	}
	return selected, unknown
}

// Count is the number of binaries in all.
func Count(all []Component) int {
	n := 0
	for _, c := range all {
		n += len(c.Binaries)
	}
	return n
}

// packages names every binary after the last element of its package path.
func packages(paths ...string) []Binary {
	binaries := make([]Binary, len(paths))
	for i, p := range paths {
		binaries[i] = Binary{Name: path.Base(p), Package: p}
	}
	return binaries
}
