// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memfit/memfit/hack/lab/internal/images"
	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/machine"
	"github.com/memfit/memfit/hack/lab/internal/node"
	"github.com/memfit/memfit/hack/lab/internal/progress"
)

// mode is where demo and end-to-end tests run.
type mode string

const (
	modeLab      mode = "lab"      // the cluster of this program
	modeKind     mode = "kind"     // a kind cluster that the lab creates
	modeExisting mode = "existing" // the cluster of $KUBECONFIG
)

// kindCluster is the name of the kind cluster that the lab creates and reuses.
const kindCluster = "memfit"

// chooseMode selects the cluster from the environment. KUBECONFIG has precedence over KIND, unless it names a
// kubeconfig that the lab wrote: users export these for kubectl.
func chooseMode(getenv func(string) string, l layout.Layout) mode {
	switch config := getenv("KUBECONFIG"); {
	case config != "" && config != l.Kubeconfig() && config != kindKubeconfig(l):
		return modeExisting
	case getenv("KIND") != "" && getenv("KIND") != "0":
		return modeKind
	default:
		return modeLab
	}
}

// kubeconfig returns the path of the mode's kubeconfig.
func (m mode) kubeconfig(getenv func(string) string, l layout.Layout) string {
	switch m {
	case modeExisting:
		return getenv("KUBECONFIG")
	case modeKind:
		return kindKubeconfig(l)
	default:
		return l.Kubeconfig()
	}
}

func kindKubeconfig(l layout.Layout) string { return filepath.Join(l.Cache, "kind.kubeconfig") }

func runClusterUp(ctx context.Context, l layout.Layout, args []string) error {
	if err := flag.NewFlagSet("cluster-up", flag.ContinueOnError).Parse(args); err != nil {
		return err
	}
	m := chooseMode(os.Getenv, l)
	switch m {
	case modeExisting:
		fmt.Fprintln(os.Stderr, "Using the cluster of KUBECONFIG="+os.Getenv("KUBECONFIG"))
	case modeKind:
		if err := kindUp(ctx, l); err != nil {
			return err
		}
	case modeLab:
		if err := up(ctx, l, node.DefaultOptions()); err != nil {
			return err
		}
	}
	fmt.Println(m.kubeconfig(os.Getenv, l))
	return nil
}

func runKubeconfig(_ context.Context, l layout.Layout, args []string) error {
	if err := flag.NewFlagSet("kubeconfig", flag.ContinueOnError).Parse(args); err != nil {
		return err
	}
	path := chooseMode(os.Getenv, l).kubeconfig(os.Getenv, l)
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("no cluster is running, `make cluster` starts one: %w", err)
	}
	fmt.Println(path)
	return nil
}

// kindUp creates the kind cluster unless it exists.
func kindUp(ctx context.Context, l layout.Layout) error {
	if _, err := exec.LookPath("kind"); err != nil {
		return fmt.Errorf("%w: KIND=1 needs the kind command and Docker or Podman. Install kind, or as root on Linux leave "+
			"KIND unset",
			machine.ErrUnsupported)
	}
	out, err := exec.CommandContext(ctx, "kind", "get", "clusters").Output()
	if err != nil {
		return fmt.Errorf("listing the kind clusters (is Docker or Podman running?): %w", err)
	}
	if err := os.MkdirAll(l.Cache, 0o755); err != nil {
		return err
	}
	if slices.Contains(strings.Fields(string(out)), kindCluster) {
		return kind(ctx, "export", "kubeconfig", "--name", kindCluster, "--kubeconfig", kindKubeconfig(l))
	}
	config := filepath.Join(l.Cache, "kind.yaml")
	if err := os.WriteFile(config, []byte(kindConfig), 0o644); err != nil {
		return fmt.Errorf("writing the configuration for kind: %w", err)
	}
	err = kind(ctx, "create", "cluster", "--name", kindCluster, "--kubeconfig", kindKubeconfig(l), "--config", config,
		"--wait", "120s")
	if err != nil {
		return err
	}
	if err := approveKubelet(ctx, l, kindKubeconfig(l)); err != nil {
		return err
	}
	return kindImages(ctx, l)
}

// kindConfig makes kubelets request their serving certificates from the cluster. By default each kubelet signs its own,
// which memfit does not trust. docs/guide/install.md has the same text.
const kindConfig = `kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
kubeadmConfigPatches:
- |
  kind: KubeletConfiguration
  apiVersion: kubelet.config.k8s.io/v1beta1
  serverTLSBootstrap: true
`

// kindImages loads the workload images into a new kind cluster. The images are built from Debian packages: on a machine
// without dpkg-deb, it prints how to add them and returns nil.
func kindImages(ctx context.Context, l layout.Layout) error {
	if !machine.Command("dpkg-deb")() {
		fmt.Fprintln(os.Stderr,
			"The workload images memfit.test/* are missing in this cluster, because they need Debian packages. Build them on",
			"Debian or Ubuntu with `go -C hack/lab run . images`, copy the tar files and load them with `KIND=1 go -C "+
				"hack/lab run . load FILE`.")
		return nil
	}
	recipes := images.Workloads()
	built, err := buildImages(ctx, l, recipes, progress.New(os.Stderr, len(recipes)))
	if err != nil {
		return err
	}
	for _, image := range built {
		if err := kind(ctx, "load", "image-archive", image.Path, "--name", kindCluster); err != nil {
			return err
		}
	}
	return nil
}

func runLoad(ctx context.Context, l layout.Layout, args []string) error {
	if len(args) == 0 {
		return errors.New("no image to load: lab load IMAGE.tar")
	}
	switch chooseMode(os.Getenv, l) {
	case modeExisting:
		return errors.New("images cannot be loaded into the cluster of KUBECONFIG: push them to a registry it can reach")
	case modeKind:
		for _, path := range args {
			if err := kind(ctx, "load", "image-archive", path, "--name", kindCluster); err != nil {
				return err
			}
		}
		return nil
	default:
		n, err := running(l)
		if err != nil {
			return err
		}
		for _, path := range args {
			if err := n.Import(ctx, path); err != nil {
				return err
			}
		}
		return nil
	}
}

// kind runs a kind command with all its output on stderr: stdout is for the lab's own result.
func kind(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "kind", args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running `kind %s`: %w", strings.Join(args, " "), err)
	}
	return nil
}
