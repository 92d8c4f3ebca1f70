// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/memfit/memfit/internal/memory"
)

func (m *Metrics) registerStalls(r prometheus.Registerer) {
	perContainer := []string{"namespace", "workload", "container"}
	m.stalls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "memfit_workload_stalls_total",
		Help: "Times a container stood still just below its limit without being killed, counted since memfit started, " +
			"by workload (Kind/name). They are not among the kills.",
	}, perContainer)
	m.stalling = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "memfit_workload_stalled_pods",
		Help: "Pods in which a container stands still just below its limit now. Absent until one ever did.",
	}, perContainer)
	r.MustRegister(m.stalls, m.stalling)
}

// stalled counts the stalls that are new, and shows how many go on.
func (m *Metrics) stalled(w memory.WorkloadRef, began, all []memory.Stall) {
	for i := range began {
		m.stalls.WithLabelValues(w.Namespace, label(w), began[i].Container.Container).Inc()
	}
	now := map[string]float64{}
	for i := range all {
		name := all[i].Container.Container
		n := now[name]
		if all[i].Ended.IsZero() {
			n++
		}
		now[name] = n
	}
	for name, n := range now {
		m.stalling.WithLabelValues(w.Namespace, label(w), name).Set(n)
	}
}
