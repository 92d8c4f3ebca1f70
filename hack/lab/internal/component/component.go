// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package component builds the programs of a Kubernetes node from pinned Go modules into a cache.
//
// A component is one upstream project, pinned by a Go module in hack/lab/modules. Its binaries share one cache entry,
// whose name has a hash of everything that determines their bytes.
package component

import (
	"cmp"
	"path"
	"slices"
)

// Component specifies the binaries and files from one pinned module.
type Component struct {
	Name     string
	Module   string   // the folder of the module in hack/lab/modules; empty: Name
	Modfile  string   // the go.mod file in that folder; empty: go.mod
	Binaries []Binary // in the order in which they are built
	Files    []File
	LDFlags  string
	Tags     string
	CGO      bool
}

func (c Component) module() string { return cmp.Or(c.Module, c.Name) }

// File is a file that a node needs in addition to programs. It joins the files in Module that match Glob.
type File struct {
	Name, Module, Glob string
}

// Binary is one main package.
type Binary struct {
	Name    string
	Package string
	Names   []string // the names of links to it, by which it selects its command; empty: Name
}

func (b Binary) names() []string {
	if len(b.Names) == 0 {
		return []string{b.Name}
	}
	return b.Names
}

// All returns all components in the order in which they are built. Those that tests of the operator need come first.
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
			Tags:    "no_btrfs no_devmapper no_zfs", // unused snapshotters that need C headers or tools
		},
		{
			Name:     "runc",
			Binaries: packages("github.com/opencontainers/runc"),
			// Static, so that a cached runc works on a machine without libseccomp.
			LDFlags: "-s -w -linkmode external -extldflags -static",
			// Without seccomp, all pods fail with "seccomp: config provided but seccomp not supported". The other two
			// avoid the C library's resolver, which does not work in a static binary.
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

// CertManager is the name of the optional component. Without it, memfit manages its certificates itself.
const CertManager = "cert-manager"

// Without returns the components except the one with the name.
func Without(all []Component, name string) []Component {
	return slices.DeleteFunc(slices.Clone(all), func(c Component) bool { return c.Name == name })
}

// Select returns the components with only the binaries of these names, in the order of all, and the unknown names.
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

// Count returns the number of binaries in the components.
func Count(all []Component) int {
	n := 0
	for _, c := range all {
		n += len(c.Binaries)
	}
	return n
}

// packages returns a binary for each package path, with the last element of the path as its name.
func packages(paths ...string) []Binary {
	binaries := make([]Binary, len(paths))
	for i, p := range paths {
		binaries[i] = Binary{Name: path.Base(p), Package: p}
	}
	return binaries
}
