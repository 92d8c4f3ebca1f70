// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"

	"github.com/memfit/memfit/internal/memory"
)

// Node is where to ask: one Kubernetes node.
type Node struct {
	// Name is metadata.name.
	Name string
	// Address is the InternalIP, or whatever name or address the kubelet answers on. IPv6 without brackets.
	Address string
	// Port is status.daemonEndpoints.kubeletEndpoint.Port; 0 means 10250.
	Port int32
	// Missing is why it is not known where to ask; nil: it is.
	Missing error
}

// Reading is what one source knew about the containers of one node at one moment.
type Reading struct {
	// Samples has one entry per running container whose memory is known; a container that is missing is unknown, not
	// empty.
	Samples []memory.Sample
	// Counters are what the kernel counted of kills in containers that live on, which no pod status shows.
	Counters []memory.KillCounter
	// Source is the Name of the source that answered, which need not be the one that was asked first.
	Source string
}

// Source is one place that knows what containers use.
type Source interface {
	// Read returns what runs on node. It is safe for concurrent use, honours ctx, and its error has the next step.
	Read(ctx context.Context, node Node) (Reading, error)
	// Name is one lower-case word for logs, metrics and status: "kubelet", "prometheus", "metrics-api".
	Name() string
}
