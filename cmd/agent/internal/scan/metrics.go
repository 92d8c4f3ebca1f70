// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the agent's counters. They name neither pods nor containers.
type Metrics struct {
	containers, pods, stretch, last    prometheus.Gauge
	readings, writes, kills, explained *prometheus.CounterVec
	alarms                             *prometheus.CounterVec
	rescue                             prometheus.Histogram
}

// NewMetrics registers them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		containers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "memfit_agent_containers", Help: "Containers whose memory is read.",
		}),
		pods: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "memfit_agent_pods", Help: "Pods of this node, as reported by the API server.",
		}),
		stretch: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "memfit_agent_interval_stretch",
			Help: "Factor on reading intervals other than those for rescues, above 1 when reading would take more than " +
				"0.5 % of a core.",
		}),
		readings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_agent_readings_total", Help: "Readings of containers: usage alone, full, or failed.",
		}, []string{"kind"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_agent_writes_total",
			Help: "MemorySnapshots sent to the API server, by result: ok, failed, or deleted (the namespace is being deleted).",
		}, []string{"result"}),
		kills: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_agent_oom_kills_total", Help: "OOM kills detected, by what was killed.",
		}, []string{"kind"}),
		explained: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_agent_inspections_total", Help: "Inspections of a container's processes (tier See): ok or failed.",
		}, []string{"result"}),
		alarms: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_agent_alarms_total",
			Help: "Alarms that a container is about to reach its limit, by result: ok, failed, or suppressed " +
				"(more than the node may send).",
		}, []string{"result"}),
		rescue: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "memfit_agent_alarm_to_limit_seconds", Help: "Time from an alarm to the higher limit in the cgroup.",
			Buckets: []float64{.05, .1, .15, .2, .3, .4, .6, 1, 2, 5},
		}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "memfit_agent_last_inspection_timestamp_seconds",
			Help: "When the last inspection ended that could read a container (tier See); 0: none did.",
		}),
	}
	r.MustRegister(m.containers, m.pods, m.stretch, m.last, m.readings, m.writes, m.kills, m.explained, m.alarms, m.rescue)
	return m
}

// inspected counts an inspection.
func (m *Metrics) inspected(f *Finding, now time.Time) {
	if f.Err != nil {
		m.explained.WithLabelValues("failed").Inc()
		return
	}
	m.explained.WithLabelValues("ok").Inc()
	m.last.Set(float64(now.Unix()))
}

func (m *Metrics) observe(l *Loop) {
	there := 0
	for _, c := range l.containers {
		if c.gone.IsZero() && c.pod != "" {
			there++
		}
	}
	m.containers.Set(float64(there))
	m.pods.Set(float64(len(l.objects)))
	m.stretch.Set(l.governor.Stretch())
}
