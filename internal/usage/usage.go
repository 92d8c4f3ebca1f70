// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"

	"github.com/memfit/memfit/internal/memory"
)

// Node is the address of one Kubernetes node.
type Node struct {
	// Name is metadata.name.
	Name string
	// Address is the InternalIP, or another name or address of the kubelet. IPv6 without brackets.
	Address string
	// Port is status.daemonEndpoints.kubeletEndpoint.Port; 0 means 10250.
	Port int32
	// Missing is why the address is unknown; nil: it is known.
	Missing error
}

// Reading is one source's data about the containers of one node at one time.
type Reading struct {
	// Samples has one entry per running container with known memory; a missing container is unknown, not empty.
	Samples []memory.Sample
	// Counters are the kernel's counts of kills in running containers, which no pod status shows.
	Counters []memory.KillCounter
	// Source is the Name of the source that responded, not necessarily the first one.
	Source string
}

// Source is one source of usage.
type Source interface {
	// Read returns the usage on node. It is safe for concurrent use, honors ctx, and its error has the next step.
	Read(ctx context.Context, node Node) (Reading, error)
	// Name is one lower-case word for logs, metrics and status: "kubelet", "prometheus", "metrics-api".
	Name() string
}
