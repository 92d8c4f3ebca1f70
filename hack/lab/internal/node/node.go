// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package node runs the one node of the lab: it renders the configuration of every daemon, starts them in the network
// namespace, reports whether they are well, and takes everything down again, also after a crash.
//
// What is not there, on purpose: DNS (names inside the cluster do not resolve; use the ClusterIP of `kubernetes`,
// which works, or a pod's address) and kube-proxy (other ClusterIPs answer no one; webhook Services still work,
// because the API server resolves those to endpoints by itself).
package node

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/process"
)

// Options are what a lab can be asked for. A running lab with other options is replaced.
type Options struct {
	// CrashBackoffMax bounds how long the kubelet waits before it starts a crashed container again. Kubernetes doubles 10
	// s up to 5 min; a demonstration of repeated OOM kills would mostly wait. For labs only: the bound applies to the
	// whole node.
	CrashBackoffMax time.Duration `json:"crashBackoffMax"`
	// CertManager: its controllers run, too. Without them memfit manages its certificates itself.
	CertManager bool `json:"certManager"`
	// Kubernetes is the version that runs.
	Kubernetes string `json:"kubernetes"`
}

// DefaultOptions are those of `lab up` without flags.
func DefaultOptions() Options {
	return Options{CrashBackoffMax: 10 * time.Second, CertManager: true}
}

// Node is the lab's node, running or not.
type Node struct {
	Layout  layout.Layout
	Bin     string // the directory of the binaries
	Options Options
	Images  []Image // imported at start; the first one holds the pods' network namespaces (the pause image)
}

// Image is a container image in a tar file.
type Image struct {
	Ref  string `json:"ref"`  // the name pods use
	Path string `json:"path"` // a docker-archive or OCI tar
}

func (n *Node) store() process.Store { return process.Store{Dir: n.Layout.Records()} }

func (n *Node) binary(name string) string { return filepath.Join(n.Bin, name) }

func (n *Node) pki(file string) string { return filepath.Join(n.Layout.PKI(), file) }

func (n *Node) config(file string) string { return filepath.Join(n.Layout.Config(), file) }

func (n *Node) data(dir string) string { return filepath.Join(n.Layout.State, dir) }

// snapshot is kept beside the state, not in it: if the state directory is lost, the machine's settings still come back.
func (n *Node) snapshot() string { return filepath.Join(n.Layout.Run, "machine.json") }

// logTail returns the end of a daemon's log, for error messages.
func logTail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
