// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count what was read of usage.
type Metrics struct {
	scrapeErrors *prometheus.CounterVec
	samples      *prometheus.CounterVec
}

// NewMetrics registers them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		scrapeErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_usage_scrape_errors_total",
			Help: "Attempts to read the usage of a node that failed. Nothing is concluded from the silence.",
		}, []string{"source"}),
		samples: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_usage_samples_total",
			Help: "Samples of governed containers taken in.",
		}, []string{"source"}),
	}
	r.MustRegister(m.scrapeErrors, m.samples)
	return m
}
