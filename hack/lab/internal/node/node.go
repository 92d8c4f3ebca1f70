// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package node runs the lab's nodes: it renders the configuration of the daemons, starts them in the network namespace,
// checks their health and removes everything again, also after a crash.
//
// Two parts of a cluster are missing on purpose. There is no DNS, so that Service names do not resolve. There is no
// kube-proxy, so that ClusterIPs do not work, except that of the Service `kubernetes`. Use the addresses of pods.
// Webhook Services work, because the API server resolves these to endpoints.
package node

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/process"
)

// Options are the parameters of a lab. A running lab with other options is replaced.
type Options struct {
	// CrashBackoffMax limits the kubelet's pause before it restarts a crashed container, for all pods of the node. The
	// pause of Kubernetes grows to 5 min, which is too long to demonstrate repeated OOM kills.
	CrashBackoffMax time.Duration `json:"crashBackoffMax"`
	// CertManager adds cert-manager's controllers. Without them, memfit manages its certificates itself.
	CertManager bool `json:"certManager"`
	// Kubernetes is the version, such as v1.36.3.
	Kubernetes string `json:"kubernetes"`
}

// DefaultOptions returns the options of `lab up` without flags.
func DefaultOptions() Options {
	return Options{CrashBackoffMax: 10 * time.Second, CertManager: true}
}

// Node is the lab's node, running or not.
type Node struct {
	Layout  layout.Layout
	Bin     string // the directory of the binaries
	Options Options
	Images  []Image // imported at start; the first is the pause image
}

// Image is a container image in a tar file.
type Image struct {
	Ref  string `json:"ref"`  // the name in pod specs
	Path string `json:"path"` // a docker-archive or OCI tar
}

func (n *Node) store() process.Store { return process.Store{Dir: n.Layout.Records()} }

func (n *Node) binary(name string) string { return filepath.Join(n.Bin, name) }

func (n *Node) pki(file string) string { return filepath.Join(n.Layout.PKI(), file) }

func (n *Node) config(file string) string { return filepath.Join(n.Layout.Config(), file) }

func (n *Node) data(dir string) string { return filepath.Join(n.Layout.State, dir) }

// snapshot returns the file with the machine's settings. It is not in the state directory, which may be lost.
func (n *Node) snapshot() string { return filepath.Join(n.Layout.Run, "machine.json") }

// logTail returns the last lines of a daemon's log.
func logTail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
