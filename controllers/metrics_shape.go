// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/signals"
)

func (m *Metrics) registerShapes(r prometheus.Registerer) {
	perContainer := []string{"namespace", "workload", "container"}
	m.drifting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "memfit_memory_drifting",
		Help: "1 while a container's memory climbs or keeps what it took (shape Climb or StepRetention, of at least Medium confidence), else 0.",
	}, perContainer)
	m.timeToLimit = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "memfit_memory_time_to_limit_seconds",
		Help: "Least time until a climbing container reaches its limit; absent while it does not climb.",
	}, perContainer)
	m.sick = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "memfit_sick_replicas",
		Help: "Pods whose memory is far above that of their replicas (at most 5 are named in status).",
	}, perContainer)
	m.restarts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "memfit_drift_restarts_total",
		Help: "Pods evicted before the kernel killed them (drift.action: Restart), since memfit started.",
	}, []string{"namespace", "workload"})
	r.MustRegister(m.drifting, m.timeToLimit, m.sick, m.restarts)
}

// shaped shows what each container's memory does.
func (m *Metrics) shaped(w memory.WorkloadRef, shapes map[string]signals.Shape) {
	for container, s := range shapes {
		labels := []string{w.Namespace, label(w), container}
		drifting := 0.0
		if drifts(s) {
			drifting = 1
		}
		m.drifting.WithLabelValues(labels...).Set(drifting)
		m.sick.WithLabelValues(labels...).Set(float64(len(s.Sick)))
		if s.Kind == signals.Climb && s.TimeToLimit[1] > 0 {
			m.timeToLimit.WithLabelValues(labels...).Set(s.TimeToLimit[0].Seconds())
		} else {
			m.timeToLimit.DeleteLabelValues(labels...)
		}
	}
}

func (m *Metrics) restarted(w memory.WorkloadRef) {
	m.restarts.WithLabelValues(w.Namespace, label(w)).Inc()
}
