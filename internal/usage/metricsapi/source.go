// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package metricsapi

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/memfit/memfit/internal/usage"
)

// Pods tells where a pod runs and which one it is; metrics.k8s.io says neither. Usually the pod cache.
type Pods interface {
	// Locate returns the node and UID of a running pod, and false for one it does not know.
	Locate(namespace, name string) (node string, uid types.UID, known bool)
}

// Options bound what is read.
type Options struct {
	// Now is the clock. Required.
	Now func() time.Time
	// MaxAge is how long one list serves all nodes. Default 10s.
	MaxAge time.Duration
	// Timeout is for one list. Default 30s.
	Timeout time.Duration
	// MaxBytes is the largest list read. Default 512Mi.
	MaxBytes int64
}

// Source reads working sets from metrics.k8s.io. Safe for concurrent use.
type Source struct{}

// New builds a Source that talks to the API server of config.
func New(config *rest.Config, pods Pods, o Options) (*Source, error) {
	_, _, _ = config, pods, o
	return &Source{}, nil
}

// Name is "metrics-api".
func (s *Source) Name() string { return "metrics-api" }

// Read returns the working sets of the containers on node.
func (s *Source) Read(context.Context, usage.Node) (usage.Reading, error) {
	return usage.Reading{}, errors.New("reading metrics.k8s.io is not implemented yet")
}
