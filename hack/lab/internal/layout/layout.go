// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package layout defines the lab's paths, names and addresses. It performs no I/O, and reads only the environment that
// its caller passes.
package layout

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
)

// labName matches valid values of $MEMFIT_LAB. They are short, because socket paths are limited to 107 bytes.
var labName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,19}$`)

// The cluster's names and addresses. They do not collide with others on the machine, because the cluster has its own
// network namespace.
const (
	// Namespace is the name of the node and of the kubeconfig context, and the default name of the lab.
	Namespace   = "memfit-lab"
	NodeName    = Namespace
	Bridge      = "lab0"
	NodeIP      = "10.240.0.10"
	NodeCIDR    = NodeIP + "/" + NodePrefix
	PodCIDR     = "10.244.0.0/24"
	ServiceCIDR = "10.96.0.0/24"
	ServiceIP   = "10.96.0.1" // the first of ServiceCIDR: Kubernetes assigns it to the Service `kubernetes`

	// The node with cgroup v2, which is a guest that is connected to the bridge (internal/uml).
	Cgroup2Name    = Namespace + "-cgroup2"
	Cgroup2IP      = "10.240.0.11"
	Cgroup2PodCIDR = "10.244.1.0/24"
	Cgroup2Device  = "cgroup2"
	// NodePrefix is the prefix length of the nodes' network.
	NodePrefix = "24"
	// Cgroup2Label is the key of that node's label and taint, whose value is `cgroup2`. Pods need a node selector and a
	// toleration to run there.
	Cgroup2Label = "memfit.dev/lab-node"

	// APIPort is 443, not the usual 6443. The API server listens on all addresses of the namespace, so pods reach it by
	// the ClusterIP of the Service `kubernetes` without kube-proxy.
	APIPort = 443
	// ForwardPort is the port on the machine's loopback for the API server, unless it is taken.
	ForwardPort = 16443
)

// Layout holds the name and the directories of one lab.
type Layout struct {
	Name  string // the lab's name, which is unique on this machine; its cgroup and its pod network have it
	Cache string // built binaries, Debian packages and images, with hashes in their names; kept between labs
	State string // etcd, containerd and kubelet data, logs, process records, certificates; removed by `lab down`
	Run   string // Unix sockets; short, because their paths are limited to 107 bytes
}

// New returns the layout for an environment.
//
// Cache is $MEMFIT_CACHE, else $XDG_CACHE_HOME/memfit, else ~/.cache/memfit. State is the same path for all users and
// checkouts, so that a new lab finds the state of a crashed one. $MEMFIT_LAB_STATE changes it, for example if it would
// be on an overlay filesystem, where containerd's overlays do not work. $MEMFIT_LAB is the name of another lab, which
// runs in parallel with its own directories, cgroup and network, for example to compare two Kubernetes versions.
func New(getenv func(string) string) (Layout, error) {
	l := Layout{Name: Namespace, State: "/var/lib/memfit-lab", Run: "/run/memfit-lab"}
	if name := getenv("MEMFIT_LAB"); name != "" {
		if !labName.MatchString(name) {
			return Layout{}, fmt.Errorf(
				"invalid MEMFIT_LAB %q: use up to 20 lowercase letters, digits and hyphens", name,
			)
		}
		// Not below the directories of the default lab, which `lab down` of that lab removes.
		l = Layout{Name: Namespace + "-" + name, State: "/var/lib/memfit-labs/" + name, Run: "/run/memfit-labs/" + name}
	}
	if dir := getenv("MEMFIT_LAB_STATE"); dir != "" {
		l.State = dir
	}
	switch {
	case getenv("MEMFIT_CACHE") != "":
		l.Cache = getenv("MEMFIT_CACHE")
	case getenv("XDG_CACHE_HOME") != "":
		l.Cache = filepath.Join(getenv("XDG_CACHE_HOME"), "memfit")
	case getenv("HOME") != "":
		l.Cache = filepath.Join(getenv("HOME"), ".cache", "memfit")
	default:
		return Layout{}, errors.New("no directory for the cache: set MEMFIT_CACHE or HOME")
	}
	for _, dir := range []string{l.Cache, l.State} {
		if !filepath.IsAbs(dir) {
			return Layout{}, errors.New(dir + " is a relative path: set MEMFIT_CACHE and MEMFIT_LAB_STATE to absolute ones")
		}
	}
	return l, nil
}

// CgroupRoot is the parent cgroup of the node's kubepods. Everything below it is the lab's and may be killed and
// removed: another kubelet on the machine uses /kubepods.
func (l Layout) CgroupRoot() string { return "/" + l.Name }

// Lock is the lock file for commands of one lab. It is not in the directories that `lab down` removes.
func (l Layout) Lock() string { return "/run/" + l.Name + ".lock" }

// Bin is the cache of built binaries.
func (l Layout) Bin() string { return filepath.Join(l.Cache, "bin") }

// Images is the cache of built images and of their Debian packages.
func (l Layout) Images() string { return filepath.Join(l.Cache, "images") }

// Kernels is the cache of kernels and disks for the node with cgroup v2.
func (l Layout) Kernels() string { return filepath.Join(l.Cache, "cgroup2") }

// Records is the directory of process records.
func (l Layout) Records() string { return filepath.Join(l.State, "processes") }

// Logs is the directory of log files.
func (l Layout) Logs() string { return filepath.Join(l.State, "logs") }

// Log is the log file of one process.
func (l Layout) Log(name string) string { return filepath.Join(l.Logs(), name+".log") }

// PKI is the directory of certificates and keys.
func (l Layout) PKI() string { return filepath.Join(l.State, "pki") }

// Config is the directory of the rendered configuration.
func (l Layout) Config() string { return filepath.Join(l.State, "config") }

// Kubeconfig is the administrator's kubeconfig for users of the machine.
func (l Layout) Kubeconfig() string { return filepath.Join(l.State, "kubeconfig") }

// ContainerdSocket is the socket of the lab's own containerd.
func (l Layout) ContainerdSocket() string { return filepath.Join(l.Run, "containerd.sock") }

// NetNS is the file on which the network namespace is mounted. It is not in /run/netns, the directory of `ip netns`: to
// create that directory would leave a mount on the machine.
func (l Layout) NetNS() string { return filepath.Join(l.Run, "netns") }
