// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import "github.com/prometheus/client_golang/prometheus"

// UsageMetrics count what was read of usage.
type UsageMetrics struct {
	scrapeErrors *prometheus.CounterVec
	samples      *prometheus.CounterVec
}

// NewUsageMetrics registers them.
func NewUsageMetrics(r prometheus.Registerer) *UsageMetrics {
	m := &UsageMetrics{
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
