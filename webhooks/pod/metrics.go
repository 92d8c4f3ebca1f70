// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/inject"
)

// Values of the metric label "result".
const (
	resultGoverned   = "governed"
	resultUngoverned = "ungoverned"
	resultError      = "error"
)

// Metrics counts admissions of pods.
type Metrics struct {
	injections  *prometheus.CounterVec
	errors      *prometheus.CounterVec
	outOfBounds prometheus.Counter             // pods that exceed a bound
	duration    map[string]prometheus.Observer // by result
	reads       *prometheus.CounterVec
}

// NewMetrics registers the webhook's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		injections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_injections_total",
			Help: "Containers of governed pods, by runtime and result: injected, nothing (every setting was already set or " +
				"skipped).",
		}, []string{"runtime", "result"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_injection_errors_total",
			Help: "Pods admitted unchanged because of an error, by the step that failed; refused: no pod of the workload that " +
				"memfit changed was created.",
		}, []string{"step"}),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_admission_reads_total",
			Help: "New pods for which the failed pods of their identity were read from the API server, by result: ok, error " +
				"(an OOM kill of the last seconds may be missing). Concurrent admissions share a read.",
		}, []string{"result"}),
		duration: make(map[string]prometheus.Observer, 3),
	}
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "memfit_admission_duration_seconds",
		Help: "Time to answer for one pod, without network and TLS.",
		// From 50 us: an ungoverned pod takes less than 100 us, a governed one less than 1 ms.
		Buckets: []float64{50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 50e-3, 0.3, 2},
	}, []string{"result"})
	for _, result := range []string{resultGoverned, resultUngoverned, resultError} {
		m.duration[result] = duration.WithLabelValues(result)
	}
	m.outOfBounds = m.errors.WithLabelValues("bounds")
	r.MustRegister(m.injections, m.errors, m.reads, duration)
	return m
}

func (m *Metrics) observe(result string, took time.Duration) {
	m.duration[result].Observe(took.Seconds())
}

// countRead counts a read of failed pods.
func (m *Metrics) countRead(err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.reads.WithLabelValues(result).Inc()
}

// count counts a plan's changes for each container that it manages.
func (m *Metrics) count(plan inject.Plan, pod *corev1.Pod) {
	if plan.Refused() != "" {
		m.outOfBounds.Inc()
		return
	}
	for container := range constraints.Containers(&pod.Spec) {
		c := plan.Container(container.Name)
		if c.Mode() == "" {
			continue // not managed
		}
		result := "nothing"
		if c.Sets() {
			result = "injected"
		}
		m.injections.WithLabelValues(c.Growth().Name, result).Inc()
	}
}
