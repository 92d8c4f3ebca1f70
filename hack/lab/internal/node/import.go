// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/memfit/memfit/hack/lab/internal/run"
)

// criNamespace is the containerd namespace of the kubelet's images and containers.
const criNamespace = "k8s.io"

func (n *Node) importAll(ctx context.Context) error {
	err := n.wait(ctx, time.Minute, []string{"containerd"}, func(ctx context.Context) error {
		return n.ctr(ctx, "version")
	})
	if err != nil {
		return err
	}
	for _, image := range n.Images {
		if err := n.Import(ctx, image.Path); err != nil {
			return err
		}
	}
	return nil
}

// Import loads a docker-archive or OCI tar into all nodes of the lab. The images have the names in the tar.
func (n *Node) Import(ctx context.Context, path string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("reading the image: %w", err)
	}
	if err := n.ctr(ctx, "images", "import", "--local", path); err != nil {
		return fmt.Errorf("importing %s: %w", path, err)
	}
	if n.Cgroup2Runs() {
		return n.importCgroup2(ctx, path)
	}
	return nil
}

func (n *Node) ctr(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(
		ctx, n.binary("ctr"),
		append([]string{"--address", n.Layout.ContainerdSocket(), "--namespace", criNamespace}, args...)...,
	)
	return run.Quiet(cmd)
}
