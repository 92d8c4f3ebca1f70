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
			Help: "Failed attempts to read the usage of a node, by source. memfit changes nothing because of missing usage.",
		}, []string{"source"}),
		samples: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_usage_samples_total",
			Help: "Samples of governed containers that were read, by source.",
		}, []string{"source"}),
	}
	r.MustRegister(m.scrapeErrors, m.samples)
	return m
}
