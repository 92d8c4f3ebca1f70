// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are the agent's counters. They name neither pods nor containers.
type Metrics struct {
	containers, pods, stretch, last      prometheus.Gauge
	readings, writes, kills, inspections *prometheus.CounterVec
	alarms                               *prometheus.CounterVec
	rescue                               prometheus.Histogram
}

// NewMetrics returns metrics that are registered in r.
func NewMetrics(r prometheus.Registerer) *Metrics {
	register := promauto.With(r)
	gauge := func(name, help string) prometheus.Gauge {
		return register.NewGauge(prometheus.GaugeOpts{Name: "memfit_agent_" + name, Help: help})
	}
	counters := func(name, label, help string) *prometheus.CounterVec {
		return register.NewCounterVec(prometheus.CounterOpts{Name: "memfit_agent_" + name, Help: help}, []string{label})
	}
	return &Metrics{
		containers: gauge("containers", "Containers whose memory is read."),
		pods:       gauge("pods", "Pods of this node, as reported by the API server."),
		stretch: gauge("interval_stretch", "Factor on reading intervals other than those for rescues, above 1 when reading "+
			"would take more than 0.5 % of a core."),
		last: gauge("last_inspection_timestamp_seconds",
			"Time at which the last successful inspection of a container ended (tier See); 0: none."),
		readings: counters("readings_total", "kind", "Readings of containers: usage alone, full, or failed."),
		writes: counters("writes_total", "result", "MemorySnapshots sent to the API server, by result: ok, failed, or "+
			"deleted (the namespace is being deleted)."),
		kills: counters("oom_kills_total", "kind", "OOM kills detected, by what was killed."),
		inspections: counters("inspections_total", "result",
			"Inspections of a container's processes (tier See): ok or failed."),
		alarms: counters("alarms_total", "result", "Alarms that a container is about to reach its limit, by result: ok, "+
			"failed, or suppressed (more than the node may send)."),
		rescue: register.NewHistogram(prometheus.HistogramOpts{
			Name: "memfit_agent_alarm_to_limit_seconds", Help: "Time from an alarm to the higher limit in the cgroup.",
			Buckets: []float64{.05, .1, .15, .2, .3, .4, .6, 1, 2, 5},
		}),
	}
}

// inspected counts an inspection.
func (m *Metrics) inspected(f *Finding, now time.Time) {
	if f.Err != nil {
		m.inspections.WithLabelValues("failed").Inc()
		return
	}
	m.inspections.WithLabelValues("ok").Inc()
	m.last.Set(float64(now.Unix()))
}

func (m *Metrics) observe(l *Loop) {
	count := 0
	for _, c := range l.containers {
		if c.gone.IsZero() && c.pod != "" {
			count++
		}
	}
	m.containers.Set(float64(count))
	m.pods.Set(float64(len(l.objects)))
	m.stretch.Set(l.governor.Stretch())
}
