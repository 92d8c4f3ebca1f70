// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package layout defines where the lab keeps everything and which addresses it uses. It only names things: it creates
// nothing and reads nothing but the environment it is given.
package layout

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
)

// labName is what $MEMFIT_LAB may be. It becomes part of socket paths, which may be 107 bytes long.
var labName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,19}$`)

// The cluster's fixed names and addresses. They live in a network namespace of their own, so they collide with nothing
// on the machine; fixed, they can be written into certificates and documentation.
const (
	// the node and the kubeconfig context carry this name; and the lab, unless $MEMFIT_LAB says another
	Namespace   = "memfit-lab"
	NodeName    = Namespace
	Bridge      = "lab0"
	NodeIP      = "10.240.0.10"
	NodeCIDR    = NodeIP + "/" + NodePrefix
	PodCIDR     = "10.244.0.0/24"
	ServiceCIDR = "10.96.0.0/24"
	ServiceIP   = "10.96.0.1" // the first of ServiceCIDR: what Kubernetes gives the Service `kubernetes`

	// The node with cgroup v2, a machine of its own behind the bridge (internal/uml).
	Cgroup2Name    = Namespace + "-cgroup2"
	Cgroup2IP      = "10.240.0.11"
	Cgroup2PodCIDR = "10.244.1.0/24"
	Cgroup2Device  = "cgroup2"
	// NodePrefix is the length of the network's part in the addresses of nodes.
	NodePrefix = "24"
	// Cgroup2Label is a label of that node, with the value `cgroup2`, and the key of its taint, so that only pods that ask
	// for the node get there.
	Cgroup2Label = "memfit.dev/lab-node"

	// APIPort is 443, not the usual 6443: bound to every address of the namespace, the API server then answers on the
	// ClusterIP of the Service `kubernetes` itself, and pods reach it without kube-proxy.
	APIPort = 443
	// ForwardPort is where the machine's own processes reach the API server, unless the port is taken.
	ForwardPort = 16443
)

// Layout is the set of directories of one lab.
type Layout struct {
	Name  string // the lab's own name on this machine: its cgroup and its pod network carry it
	Cache string // built binaries, Debian packages and images: kept between labs, content-addressed
	State string // etcd, containerd and kubelet data, logs, process records, certificates: gone after `lab down`
	Run   string // unix sockets: their paths may be 107 bytes long at most, so this one is short
}

// New derives the layout from the environment: $MEMFIT_CACHE, else $XDG_CACHE_HOME/memfit, else ~/.cache/memfit.
//
// State is the same path for every user and every checkout on purpose: there is one lab per machine, and the next one
// must find what a crashed predecessor left. $MEMFIT_LAB_STATE moves it, for example off an overlay filesystem, on
// which containerd cannot put its own overlays. $MEMFIT_LAB names another lab, which runs beside the first one with
// directories, a cgroup and a network of its own: for comparing two Kubernetes versions.
func New(getenv func(string) string) (Layout, error) {
	l := Layout{Name: Namespace, State: "/var/lib/memfit-lab", Run: "/run/memfit-lab"}
	if name := getenv("MEMFIT_LAB"); name != "" {
		if !labName.MatchString(name) {
			return Layout{}, fmt.Errorf(
				"invalid MEMFIT_LAB %q: use up to 20 lowercase letters, digits and hyphens", name,
			)
		}
		// Not below the first one's directories: taking that one down removes all of them.
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
		return Layout{}, errors.New("no place for the cache: set MEMFIT_CACHE or HOME")
	}
	for _, dir := range []string{l.Cache, l.State} {
		if !filepath.IsAbs(dir) {
			return Layout{}, errors.New(dir + " is a relative path: set MEMFIT_CACHE and MEMFIT_LAB_STATE to absolute ones")
		}
	}
	return l, nil
}

// CgroupRoot is the parent of the node's kubepods. A kubelet elsewhere on the machine uses /kubepods, so whatever is
// below this one is the lab's and may be ended and removed.
func (l Layout) CgroupRoot() string { return "/" + l.Name }

// Lock is the file that makes commands of one lab take turns. It is outside the directories that `down` removes.
func (l Layout) Lock() string { return "/run/" + l.Name + ".lock" }

// Bin is the store of built binaries.
func (l Layout) Bin() string { return filepath.Join(l.Cache, "bin") }

// Images is the store of built images and of the packages they are made of.
func (l Layout) Images() string { return filepath.Join(l.Cache, "images") }

// Kernels is the store of what the node with cgroup v2 is made of: its kernel and its disks.
func (l Layout) Kernels() string { return filepath.Join(l.Cache, "cgroup2") }

// Records is where the started processes are written down.
func (l Layout) Records() string { return filepath.Join(l.State, "processes") }

// Logs is where every process writes NAME.log.
func (l Layout) Logs() string { return filepath.Join(l.State, "logs") }

// Log is the log file of one process.
func (l Layout) Log(name string) string { return filepath.Join(l.Logs(), name+".log") }

// PKI is where certificates and keys are.
func (l Layout) PKI() string { return filepath.Join(l.State, "pki") }

// Config is where the rendered configuration of every component is.
func (l Layout) Config() string { return filepath.Join(l.State, "config") }

// Kubeconfig is the administrator's kubeconfig for processes of the machine.
func (l Layout) Kubeconfig() string { return filepath.Join(l.State, "kubeconfig") }

// ContainerdSocket is the lab's own: a containerd of the machine is left alone.
func (l Layout) ContainerdSocket() string { return filepath.Join(l.Run, "containerd.sock") }

// NetNS is the file that keeps the network namespace alive. It is not in /run/netns, where `ip netns` would look for
// it: making that directory leaves a mount behind on machines that did not have it.
func (l Layout) NetNS() string { return filepath.Join(l.Run, "netns") }
