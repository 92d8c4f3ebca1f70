// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"

	"github.com/memfit/memfit/hack/lab/internal/process"
)

// Status is the state of a lab, for `lab status`.
type Status struct {
	Processes                               []process.Record
	Problem                                 string // why the lab is unhealthy; empty: it is healthy
	Kubernetes, APIServer, Kubeconfig, Logs string
}

// Status reads the state of the lab and changes nothing.
func (n *Node) Status(ctx context.Context) (Status, error) {
	records, err := n.store().List()
	if err != nil {
		return Status{}, err
	}
	s := Status{Processes: records}
	if len(records) == 0 {
		return s, nil
	}
	if id, err := n.readIdentity(); err == nil {
		s.Kubernetes = id.Options.Kubernetes
	}
	s.Kubeconfig, s.Logs = n.Layout.Kubeconfig(), n.Layout.Logs()
	if a, err := newAPI(n.Layout.Kubeconfig()); err == nil {
		s.APIServer = a.url
	}
	if err := n.Healthy(ctx); err != nil {
		s.Problem = err.Error()
	} else if n.Cgroup2Requested() {
		if err := n.Cgroup2Healthy(ctx); err != nil {
			s.Problem = err.Error()
		}
	}
	return s, nil
}
