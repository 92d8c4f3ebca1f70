// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package server

import "github.com/prometheus/client_golang/prometheus"

// Values of the metric label "reason".
const (
	reasonConnections = "too-many-connections"
	reasonClosed      = "connection-closed"
	reasonCertificate = "client-certificate"
	reasonHandshake   = "handshake"
	reasonTooLarge    = "too-large"
	reasonBusy        = "busy"
	reasonSlow        = "slow"
	reasonCutOff      = "cut-off"
)

// Metrics are the metrics of the server's connections, memory and refusals.
type Metrics struct {
	refused            *prometheus.CounterVec
	connections, bytes prometheus.Gauge
}

// NewMetrics registers the server's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_admission_refused_total",
			Help: "Connections and requests to the webhook's port that were refused or canceled, by reason.",
		}, []string{"reason"}),
		connections: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "memfit_admission_connections",
			Help: "Connections to the webhook's port that are open.",
		}),
		bytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "memfit_admission_request_bytes",
			Help: "Memory held for the bodies of requests that are being read or answered.",
		}),
	}
	for _, reason := range []string{
		reasonConnections, reasonClosed, reasonCertificate, reasonHandshake, reasonTooLarge, reasonBusy, reasonSlow,
		reasonCutOff,
	} {
		m.refused.WithLabelValues(reason) // exported as 0, so that rates include the first refusal
	}
	r.MustRegister(m.refused, m.connections, m.bytes)
	return m
}
