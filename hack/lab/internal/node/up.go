// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/machine"
	"github.com/memfit/memfit/hack/lab/internal/netns"
	"github.com/memfit/memfit/hack/lab/internal/process"
	"github.com/memfit/memfit/hack/lab/internal/progress"
)

// StartSteps returns the number of steps that Start reports.
func (o Options) StartSteps() int {
	if o.CertManager {
		return 5
	}
	return 4
}

// Start starts a new node. Call Down first: nothing of an earlier lab may be left.
func (n *Node) Start(ctx context.Context, report *progress.Reporter) error {
	if err := n.prepare(ctx); err != nil {
		return err
	}
	step := func(ctx context.Context, name, doing string, do func(context.Context) error) error {
		s := report.Start(name, doing)
		if err := do(ctx); err != nil {
			s.Fail()
			return err
		}
		s.Done("done")
		return nil
	}
	// Unpacking half a gigabyte of images takes as long as everything else, so both run in parallel.
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if _, err := n.store().Run(n.containerd()); err != nil {
			return err
		}
		return step(groupCtx, "images", "importing", n.importAll)
	})
	group.Go(func() error {
		if err := step(groupCtx, "control plane", "starting", n.startControlPlane); err != nil {
			return err
		}
		if err := step(groupCtx, "node", "starting", n.startKubelet); err != nil {
			return err
		}
		if !n.Options.CertManager {
			return nil
		}
		return step(groupCtx, "cert-manager", "starting", n.startCertManager)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	// Notice daemons that died meanwhile.
	return step(ctx, "health", "checking", func(ctx context.Context) error {
		if err := waitFor(ctx, 30*time.Second, n.Healthy); err != nil {
			return fmt.Errorf("the lab started, but is unhealthy: %w", err)
		}
		return n.writeIdentity()
	})
}

// prepare creates the directories, cgroups, network namespace and configuration that daemons need.
func (n *Node) prepare(ctx context.Context) error {
	for _, dir := range []string{n.Layout.State, n.Layout.Run, n.data("bin"), n.data("kubelet")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := machine.TakeSnapshot(n.snapshot()); err != nil {
		return err
	}
	if err := makeCgroups(n.Layout.CgroupRoot()); err != nil {
		return err
	}
	err := netns.Create(ctx, netns.Network{
		Path: n.Layout.NetNS(), Bridge: layout.Bridge, NodeCIDR: layout.NodeCIDR, Local: []string{layout.ServiceIP},
	})
	if err != nil {
		return err
	}
	if err := n.writeConfig(); err != nil {
		return err
	}
	return copySelf(n.data("bin/lab"))
}

func (n *Node) startControlPlane(ctx context.Context) error {
	listen, err := freeAddress(layout.ForwardPort)
	if err != nil {
		return err
	}
	if err := n.writeCredentials("https://" + listen); err != nil {
		return err
	}
	specs := []process.Spec{
		n.etcd(), n.apiServer(),
		n.forwarder("api-forward", listen, fmt.Sprintf("%s:%d", layout.NodeIP, layout.APIPort)),
	}
	for _, spec := range specs {
		if _, err := n.store().Run(spec); err != nil {
			return err
		}
	}
	a, err := newAPI(n.Layout.Kubeconfig())
	if err != nil {
		return err
	}
	// It takes 5 s on two idle cores, and longer on a busy machine.
	if err := n.wait(ctx, 2*time.Minute, []string{"etcd", "kube-apiserver", "api-forward"}, a.ready); err != nil {
		return err
	}
	for _, spec := range []process.Spec{n.controllerManager(), n.scheduler()} {
		if _, err := n.store().Run(spec); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) startKubelet(ctx context.Context) error {
	if _, err := n.store().Run(n.kubelet()); err != nil {
		return err
	}
	a, err := newAPI(n.Layout.Kubeconfig())
	if err != nil {
		return err
	}
	ready := func(ctx context.Context) error { return a.nodeReady(ctx, layout.NodeName) }
	return n.wait(ctx, 2*time.Minute, []string{"kubelet", "containerd", "kube-apiserver"}, ready)
}
