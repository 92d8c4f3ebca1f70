// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/memfit/memfit/internal/memory"
)

// gauge is one of the gauges that every container of a governed workload may have.
type gauge int

const (
	recommendedLimit gauge = iota
	currentLimit
	inUse
	drifting
	timeToLimit
	outlierReplicas
	stalledPods
	loaned
	gaugeKinds
)

// about has the name and the help of each gauge.
var about = [gaugeKinds]struct{ name, help string }{
	recommendedLimit: {
		"memfit_recommended_limit_bytes", "Memory limit recommended for a container; absent while the decision is Hold.",
	},
	currentLimit: {
		"memfit_current_limit_bytes", "Memory limit that running pods have now; absent where they have none.",
	},
	inUse: {
		"memfit_use_bytes", "Highest demand of one running replica of a container within the last two hours " +
			"(status.containers[].usage of its MemoryRecommendation): memory that the kernel cannot reclaim.",
	},
	drifting: {
		"memfit_memory_drifting",
		"1 while the shape of a container's memory is Climb or StepRetention with at least Medium confidence, else 0.",
	},
	timeToLimit: {
		"memfit_memory_time_to_limit_seconds",
		"Shortest expected time until a climbing container reaches its limit; absent while it does not climb.",
	},
	outlierReplicas: {
		"memfit_outlier_replicas",
		"Pods whose memory is far above that of their replicas (status names at most 5).",
	},
	stalledPods: {
		"memfit_workload_stalled_pods",
		"Pods in which a container is stalled just below its limit. Absent until the first stall.",
	},
	loaned: {
		"memfit_loaned_bytes", "Total increase of running pods' limits by loans (sizing.rescue); absent without a " +
			"loan.",
	},
}

// gauges holds the values of all gauges of all containers. A GaugeVec needs some 450 bytes for each series, mostly
// repeated labels; here a container takes one row, and labels are created on collection.
type gauges struct {
	of [gaugeKinds]*prometheus.Desc

	mu   sync.Mutex
	rows map[labeled][]row
}

// labeled is the workload in the labels of a series, without its API version.
type labeled struct{ namespace, kind, name string }

// row has the values of one container.
type row struct {
	container string
	value     [gaugeKinds]float64
	shown     [gaugeKinds]bool
}

func newGauges(r prometheus.Registerer) *gauges {
	g := &gauges{rows: map[labeled][]row{}}
	names := []string{labelNamespace, labelWorkload, labelContainer}
	for i := range about {
		g.of[i] = prometheus.NewDesc(about[i].name, about[i].help, names, nil)
	}
	r.MustRegister(g)
	return g
}

func labeledAs(w memory.WorkloadRef) labeled { return labeled{w.Namespace, w.Kind, w.Title()} }

// set replaces the rows of a workload; without rows it removes the workload.
func (g *gauges) set(w memory.WorkloadRef, rows []row) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rows[labeledAs(w)] = rows; len(rows) == 0 {
		delete(g.rows, labeledAs(w))
	}
}

// add makes a series present, and adds to its value.
func (r *row) add(which gauge, value float64) {
	r.value[which] += value
	r.shown[which] = true
}

// Describe is for Prometheus' registry.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range g.of {
		out <- desc
	}
}

// Collect sends the series. The receiver may be slow, so the lock is not held while it reads. That is safe because rows
// are replaced and never modified.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	g.mu.Lock()
	all := maps.Clone(g.rows)
	g.mu.Unlock()
	for w, rows := range all {
		name := w.kind + "/" + w.name
		for i := range rows {
			r := &rows[i]
			pairs := labels(&w.namespace, &name, &r.container)
			each := make([]series, gaugeKinds) // one allocation: separate ones would cost a third more
			for which, desc := range g.of {
				if r.shown[which] {
					each[which] = series{desc, pairs, &r.value[which]}
					out <- &each[which]
				}
			}
		}
	}
}

// Label names, shared by all series.
var labelNamespace, labelWorkload, labelContainer = "namespace", "workload", "container"

// labels returns the labels of a container's series in alphabetical order, as Prometheus requires.
func labels(namespace, workload, container *string) []*dto.LabelPair {
	return []*dto.LabelPair{
		{Name: &labelContainer, Value: container}, {Name: &labelNamespace, Value: namespace},
		{Name: &labelWorkload, Value: workload},
	}
}

// series is the value of a gauge at collection. It replaces constant metrics of client_golang, which build labels for
// each: gathering 10,000 containers took three times as long (BenchmarkGather).
type series struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	value  *float64
}

// Desc is for Prometheus' registry.
func (s *series) Desc() *prometheus.Desc { return s.desc }

func (s *series) Write(out *dto.Metric) error {
	out.Label, out.Gauge = s.labels, &dto.Gauge{Value: s.value}
	return nil
}
