// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/memfit/memfit/hack/lab/internal/layout"
	"github.com/memfit/memfit/hack/lab/internal/process"
)

// daemons returns the names of the daemons of a healthy lab, in the order in which they start.
func (n *Node) daemons() []string {
	names := []string{
		"etcd", "containerd", "kube-apiserver", "api-forward", "kube-controller-manager", "kube-scheduler", "kubelet",
	}
	if n.Options.CertManager {
		names = append(names, "cert-manager")
	}
	return names
}

// Healthy returns nil if all daemons run, the API server is ready and pods can be scheduled. Otherwise the error names
// the first problem.
func (n *Node) Healthy(ctx context.Context) error {
	if err := n.daemonsAlive(); err != nil {
		return err
	}
	a, err := newAPI(n.Layout.Kubeconfig())
	if err != nil {
		return err
	}
	if err := a.ready(ctx); err != nil {
		return fmt.Errorf("the API server is not ready: %w", err)
	}
	return a.nodeReady(ctx, layout.NodeName)
}

// daemonsAlive returns an error that names the first daemon that is not running, or nil.
func (n *Node) daemonsAlive() error {
	records, err := n.store().List()
	if err != nil {
		return err
	}
	for _, name := range n.daemons() {
		i := slices.IndexFunc(records, func(r process.Record) bool { return r.Name == name })
		if i < 0 || !records[i].Alive() {
			return fmt.Errorf("%s is not running", name)
		}
	}
	return nil
}

// wait repeats check until it returns nil, limit has passed or one of the daemons has ended. The error has the end of
// the log of that daemon, else of the first one.
func (n *Node) wait(
	ctx context.Context, limit time.Duration, daemons []string, check func(context.Context) error,
) error {
	var dead string
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := waitFor(ctx, limit, func(ctx context.Context) error {
		for _, name := range daemons {
			if r, err := n.store().Get(name); err == nil && !r.Alive() {
				dead = name
				cancel()
			}
		}
		return check(ctx)
	})
	if err == nil {
		return nil
	}
	if dead == "" {
		dead = daemons[0]
	} else {
		err = fmt.Errorf("%s ended", dead)
	}
	log := n.Layout.Log(dead)
	return fmt.Errorf("%w\nthe last lines of %s:\n%s", err, log, logTail(log, 15))
}
