// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"errors"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
)

// Options say where Prometheus is and what it calls things.
type Options struct {
	// URL is the base, with the path prefix if there is one: "https://mimir.example:8080/prometheus". Required.
	URL string
	// BearerTokenFile is read again every minute; it wins over BearerToken.
	BearerToken, BearerTokenFile string
	// CAFile verifies an https URL; default: the system's authorities.
	CAFile string
	// InsecureSkipTLSVerify sends the token to whoever answers. Default false.
	InsecureSkipTLSVerify bool
	// Headers are sent along, for example X-Scope-OrgID for Mimir's tenants.
	Headers map[string]string
	// Timeout is for one query. Default 30s.
	Timeout time.Duration
	// MaxBytes is the largest answer read. Default 64Mi.
	MaxBytes int64
	// Queries override the PromQL.
	Queries Queries
}

// Queries are Go text/template strings that give PromQL; an empty one means the default.
type Queries struct{}

// Source reads usage from Prometheus. Safe for concurrent use.
type Source struct{}

// New checks the options and parses the templates; it does not connect.
func New(o Options) (*Source, error) {
	_ = o
	return &Source{}, nil
}

// Name is "prometheus".
func (s *Source) Name() string { return "prometheus" }

// Read returns what Prometheus saw last on node.
func (s *Source) Read(context.Context, usage.Node) (usage.Reading, error) {
	return usage.Reading{}, errNotYet
}

// Span is a stretch of history.
type Span struct {
	From, To time.Time
	// Step is the resolution. Default 5m.
	Step time.Duration
}

// History hands over the samples of all pods that ever belonged to the workload within span, oldest day first. Samples that Prometheus
// does not have are not made up. take must not block.
func (s *Source) History(ctx context.Context, w memory.WorkloadRef, span Span, take func(memory.Sample)) error {
	_, _, _, _ = ctx, w, span, take
	return errNotYet
}

var errNotYet = errors.New("reading Prometheus is not implemented yet")
