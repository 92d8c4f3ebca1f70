// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"time"
)

// Restart kills a daemon, starts it with the same arguments, and waits until the API server is ready.
func (n *Node) Restart(ctx context.Context, name string) error {
	r, err := n.store().Get(name)
	if err != nil {
		return err
	}
	if err := r.Stop(); err != nil {
		return err
	}
	if _, err := n.store().Run(r.Spec); err != nil {
		return err
	}
	a, err := newAPI(n.Layout.Kubeconfig())
	if err != nil {
		return err
	}
	return n.wait(ctx, 2*time.Minute, []string{name}, a.ready)
}
