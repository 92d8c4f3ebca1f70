// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/netns"
	"github.com/memfit/memfit/hack/lab/internal/pki"
	"github.com/memfit/memfit/hack/lab/internal/process"
	"github.com/memfit/memfit/hack/lab/internal/progress"
	"github.com/memfit/memfit/hack/lab/internal/uml"
)

// Cgroup2Steps is the number of steps that StartCgroup2 and the build of the kernel report.
const Cgroup2Steps = 3

// cgroup2Daemon is the name of the guest's process. Its log has the output of the guest's kernel, containerd and
// kubelet.
const cgroup2Daemon = "cgroup2-node"

// Cgroup2 holds the parameters of the node with cgroup v2. Equal paths hold equal files: the names have hashes.
type Cgroup2 struct {
	Kernel   string       `json:"kernel"` // a file
	Bin      string       `json:"bin"`    // the directory of the programs
	Variants uml.Variants `json:"variants"`
	Images   []Image      `json:"images"`
}

func (n *Node) cgroup2Data(name string) string { return n.data("cgroup2/" + name) }

func (n *Node) cgroup2Share() uml.Share { return uml.Share(n.cgroup2Data("share")) }

// cgroup2Memory returns the mount point of the guest's memory. It is below Run, so that Down unmounts it.
func (n *Node) cgroup2Memory() string { return filepath.Join(n.Layout.Run, "cgroup2-memory") }

// cgroup2Run returns the directory of a socket, so its path must be short.
func (n *Node) cgroup2Run() string { return filepath.Join(n.Layout.Run, "cgroup2") }

func (n *Node) cgroup2Identity() string { return n.cgroup2Data("node.json") }

// Cgroup2Requested reports whether the running lab includes the node, which may be unhealthy or dead.
func (n *Node) Cgroup2Requested() bool {
	_, err := n.store().Get(cgroup2Daemon)
	return err == nil
}

// Cgroup2Runs reports whether the guest's process is running.
func (n *Node) Cgroup2Runs() bool {
	r, err := n.store().Get(cgroup2Daemon)
	return err == nil && r.Alive()
}

// Cgroup2Healthy returns nil if the node is healthy, otherwise why it is not.
func (n *Node) Cgroup2Healthy(ctx context.Context) error {
	if !n.Cgroup2Runs() {
		return fmt.Errorf("%s is not running (NODE=cgroup2 starts it again)", cgroup2Daemon)
	}
	a, err := newAPI(n.Layout.Kubeconfig())
	if err != nil {
		return err
	}
	if err := a.nodeReady(ctx, layout.Cgroup2Name); err != nil {
		return fmt.Errorf("%s: %w", layout.Cgroup2Name, err)
	}
	return nil
}

// Cgroup2Reusable returns nil if the running node is healthy and as wanted, otherwise why it must be replaced.
func (n *Node) Cgroup2Reusable(ctx context.Context, want Cgroup2) error {
	have, err := n.readCgroup2()
	if err != nil {
		return err
	}
	if have.Variants != want.Variants {
		return fmt.Errorf("it has the variants %q instead of %q", have.Variants, want.Variants)
	}
	if have.Kernel != want.Kernel || have.Bin != want.Bin {
		return errors.New("it has another kernel or other programs")
	}
	if !n.Cgroup2Runs() {
		return errors.New("it is not running")
	}
	return waitFor(ctx, 20*time.Second, n.Cgroup2Healthy)
}

// RefreshCgroup2 imports the images that changed since the node was started.
func (n *Node) RefreshCgroup2(ctx context.Context, want Cgroup2) error {
	have, err := n.readCgroup2()
	if err != nil {
		return err
	}
	for _, image := range want.Images {
		if slices.Contains(have.Images, image) {
			continue
		}
		if err := n.importCgroup2(ctx, image.Path); err != nil {
			return err
		}
		have.Images = append(have.Images, image)
	}
	return writeRecord(n.cgroup2Identity(), have)
}

// StartCgroup2 adds the node to the running lab. It removes a previous node first.
func (n *Node) StartCgroup2(ctx context.Context, builder *uml.Builder, want Cgroup2, report *progress.Reporter) error {
	if err := n.RemoveCgroup2(ctx); err != nil {
		return fmt.Errorf("removing the previous node with cgroup v2: %w", err)
	}
	seed, err := n.seed(ctx, builder, want)
	if err != nil {
		return err
	}
	step := report.Start("cgroup2 node", "starting")
	if err := n.startCgroup2(ctx, seed, want); err != nil {
		step.Fail()
		return fmt.Errorf("starting the node with cgroup v2: %w", err)
	}
	step.Done("ready")
	return nil
}

func (n *Node) seed(ctx context.Context, builder *uml.Builder, want Cgroup2) (string, error) {
	containerd, err := render("containerd.toml", n.cgroup2Settings(uml.Variants{}))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(n.cgroup2Data(""), 0o700); err != nil {
		return "", err
	}
	r := uml.SeedRequest{
		Kernel: want.Kernel, Programs: want.Bin,
		Config: map[string][]byte{"config/containerd.toml": containerd},
		Share:  n.cgroup2Share(), Memory: n.cgroup2Memory(), Run: n.cgroup2Run(),
	}
	for _, image := range want.Images {
		r.Images = append(r.Images, image.Path)
	}
	return builder.Seed(ctx, r)
}

func (n *Node) startCgroup2(ctx context.Context, seed string, want Cgroup2) error {
	boot := uml.Boot{
		Kernel: want.Kernel, Disk: n.cgroup2Data("disk.ext4"), Share: n.cgroup2Share(),
		Memory: n.cgroup2Memory(), Run: n.cgroup2Run(), Device: layout.Cgroup2Device,
	}
	if err := uml.CopyDisk(seed, boot.Disk); err != nil {
		return err
	}
	if want.Variants.Swap {
		boot.Swap = n.cgroup2Data("swap")
		if err := uml.MakeSparse(boot.Swap, uml.SwapSize); err != nil {
			return err
		}
	}
	if err := n.fillCgroup2Share(want); err != nil {
		return err
	}
	if err := os.MkdirAll(boot.Run, 0o700); err != nil {
		return err
	}
	if err := uml.MountMemory(boot.Memory); err != nil {
		return err
	}
	if err := netns.Attach(
		ctx, n.Layout.NetNS(), layout.Bridge, layout.Cgroup2Device, layout.Cgroup2PodCIDR, layout.Cgroup2IP,
	); err != nil {
		return err
	}
	if _, err := n.store().Run(n.cgroup2Process(boot)); err != nil {
		return err
	}
	if err := n.wait(ctx, 2*time.Minute, []string{cgroup2Daemon}, n.Cgroup2Healthy); err != nil {
		return err
	}
	return writeRecord(n.cgroup2Identity(), want)
}

func (n *Node) cgroup2Process(boot uml.Boot) process.Spec {
	return process.Spec{
		Name: cgroup2Daemon, Path: boot.Kernel, Args: boot.Args(), Env: boot.Env(), NetNS: n.Layout.NetNS(),
		Log: n.Layout.Log(cgroup2Daemon),
	}
}

// The socket of containerd in the guest, and the taint and label of the node.
const (
	guestSocket = "/run/lab/containerd.sock"
	guestTaint  = layout.Cgroup2Label + "=cgroup2:NoSchedule"
	guestLabel  = layout.Cgroup2Label + "=cgroup2"
)

func (n *Node) cgroup2Settings(v uml.Variants) settings {
	s := n.settings()
	s.Bin, s.Run, s.State, s.PKI, s.Config = "/opt/lab", "/run/lab", "/var/lib/lab", "/share/pki", "/share/config"
	s.Socket, s.NodeIP, s.PodCIDR, s.CgroupRoot = guestSocket, layout.Cgroup2IP, layout.Cgroup2PodCIDR, "/"
	s.Network, s.Guest, s.FeatureGates = "pods", &v, n.featureGates(&v)
	return s
}

// fillCgroup2Share writes the configuration and credentials of the guest's containerd and kubelet.
func (n *Node) fillCgroup2Share(want Cgroup2) error {
	share, swap := n.cgroup2Share(), ""
	if want.Variants.Swap {
		swap = "1"
	}
	if err := share.Prepare(map[string]string{
		"NODE": layout.Cgroup2Name, "NODE_IP": layout.Cgroup2IP, "PREFIX": layout.NodePrefix, "GATEWAY": layout.NodeIP,
		"LABELS": guestLabel, "TAINTS": guestTaint, "SWAP": swap, "SEED": "",
	}); err != nil {
		return err
	}
	for name, target := range configFiles {
		data, err := render(name, n.cgroup2Settings(want.Variants))
		if err != nil {
			return err
		}
		if err := share.Put(filepath.Join("config", target), data); err != nil {
			return err
		}
	}
	return n.cgroup2Credentials(share)
}

// cgroup2Credentials issues the client and serving certificates of the guest's kubelet.
func (n *Node) cgroup2Credentials(share uml.Share) error {
	ca, err := pki.LoadAuthority(n.Layout.PKI(), "ca")
	if err != nil {
		return err
	}
	name := "system:node:" + layout.Cgroup2Name
	server, err := ca.Issue(pki.Subject{Name: name, Hosts: []string{layout.Cgroup2Name, layout.Cgroup2IP, "127.0.0.1"}})
	if err != nil {
		return err
	}
	client, err := ca.Issue(pki.Subject{Name: name, Groups: []string{"system:nodes"}})
	if err != nil {
		return err
	}
	kubeconfig, err := pki.Kubeconfig(
		layout.Namespace, fmt.Sprintf("https://%s:%d", layout.NodeIP, layout.APIPort), ca.Cert, client,
	)
	if err != nil {
		return err
	}
	return errors.Join(
		share.Put("pki/ca.crt", ca.Cert), share.Put("pki/kubelet.crt", server.Cert),
		share.Put("pki/kubelet.key", server.Key), share.Put("config/kubelet.kubeconfig", kubeconfig),
	)
}

// RemoveCgroup2 stops the node, deletes its Node object and removes its files. It also cleans up after a node that was
// killed or did not start.
func (n *Node) RemoveCgroup2(ctx context.Context) error {
	if r, err := n.store().Get(cgroup2Daemon); err == nil {
		if err := errors.Join(r.Stop(), n.store().Forget(cgroup2Daemon)); err != nil {
			return err
		}
		// The control plane deletes the pods of a deleted node.
		err := n.kubectl(ctx, nil, "delete", "node", layout.Cgroup2Name, "--ignore-not-found", "--wait=false")
		if err != nil {
			return err
		}
	}
	// Guests of an interrupted first boot, which has no record.
	kernels := n.Layout.Kernels() + "/"
	ours := func(args []string) bool { return strings.HasPrefix(args[0], kernels) && n.isStray(args) }
	if err := n.sweep(ours); err != nil {
		return err
	}
	if err := netns.Detach(ctx, n.Layout.NetNS(), layout.Cgroup2PodCIDR); err != nil {
		return err
	}
	if err := uml.UnmountMemory(n.cgroup2Memory()); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(n.cgroup2Run()), os.RemoveAll(n.cgroup2Data("")))
}

// importTimeout limits the import of one image, in case the guest hangs. The biggest image takes 20 s.
const importTimeout = 3 * time.Minute

// importCgroup2 loads an image tar into the guest.
func (n *Node) importCgroup2(ctx context.Context, path string) error {
	inGuest, remove, err := n.cgroup2Share().AddImage(fmt.Sprintf("%d-%s", os.Getpid(), filepath.Base(path)), path)
	if err != nil {
		return err
	}
	defer remove()
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	_, err = n.RunInCgroup2(
		ctx, "ctr --address "+guestSocket+" --namespace "+criNamespace+" images import --local '"+inGuest+"'",
	)
	if err != nil {
		return fmt.Errorf("importing %s into %s: %w", path, layout.Cgroup2Name, err)
	}
	return nil
}

// RunInCgroup2 runs a shell script in the guest as root and returns its output.
func (n *Node) RunInCgroup2(ctx context.Context, script string) ([]byte, error) {
	return n.cgroup2Share().Run(ctx, n.Cgroup2Runs, script)
}

func (n *Node) readCgroup2() (c Cgroup2, err error) {
	err = readRecord(n.cgroup2Identity(), &c, "it never came up")
	return c, err
}
