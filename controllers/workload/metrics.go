// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rescue"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/shape"
	"github.com/memfit/memfit/internal/workload"
)

// Metrics has the metrics of governed workloads. Their series are removed with the workload.
type Metrics struct {
	kills, stalls, restarts, changes *prometheus.CounterVec

	timedOut prometheus.Counter
	gauges   *gauges
}

// NewMetrics registers the controllers' metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		labels = append([]string{"namespace", "workload"}, labels...)
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	m := &Metrics{
		kills: counter("memfit_oom_kills_total",
			"OOM kills since memfit started, each counted once, by workload (Kind/name), container and kind.",
			"container", "kind"),
		stalls: counter("memfit_workload_stalls_total",
			"Memory stalls since memfit started, by workload (Kind/name) and container: the container thrashed just "+
				"below its limit and was not killed. OOM kills are not included.",
			"container"),
		restarts: counter("memfit_drift_restarts_total",
			"Pods evicted because their memory grows (drift.action: Restart), since memfit started."),
		changes: counter("memfit_changes_total",
			"Changes of running pods (Resize, Evict, Rollback) and their outcomes (Resized, Replaced, NotResized, "+
				"Reverted, ConflictingWriter), by workload (Kind/name).",
			"what"),
		timedOut: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "memfit_reconciles_timed_out_total",
			Help: "Reconciles of a workload that were canceled after ten seconds.",
		}),
		gauges: newGauges(r),
	}
	r.MustRegister(m.timedOut)
	return m
}

// label returns the label "workload": "Deployment/web", or "DaemonSet/log/m5.large" for a class of nodes.
func label(w memory.WorkloadRef) string { return w.Kind + "/" + w.Title() }

// count counts what a step found.
func (m *Metrics) count(w memory.WorkloadRef, f *workload.Effects) {
	for i := range f.Kills {
		k := &f.Kills[i]
		m.kills.WithLabelValues(w.Namespace, label(w), k.Container.Container, string(k.Kind)).Inc()
	}
	for i := range f.NewStalls {
		m.stalls.WithLabelValues(w.Namespace, label(w), f.NewStalls[i].Container.Container).Inc()
	}
	for i := range f.Findings {
		m.countChange(w, string(f.Findings[i].Kind))
	}
}

func (m *Metrics) countChange(w memory.WorkloadRef, what string) {
	m.changes.WithLabelValues(w.Namespace, label(w), what).Inc()
}

func actionName(a rollout.Action) string {
	switch {
	case a.Undo:
		return "Rollback"
	case a.Evict:
		return "Evict"
	}
	return "Resize"
}

// show sets the gauges of a workload from a step's result and its loans.
func (m *Metrics) show(w memory.WorkloadRef, f *workload.Effects, loans []rescue.Loan) {
	var rows []row
	rowOf := func(container string) *row {
		i := slices.IndexFunc(rows, func(r row) bool { return r.container == container })
		if i < 0 {
			i, rows = len(rows), append(rows, row{container: container})
		}
		return &rows[i]
	}
	for i := range f.Status.Containers {
		c := &f.Status.Containers[i]
		r := rowOf(c.Container)
		if c.Recommended != nil {
			r.addQuantity(recommendedLimit, c.Recommended.Limit)
		}
		r.addQuantity(currentLimit, c.Current.Limit)
		r.addQuantity(inUse, c.Usage)
	}
	for container, s := range f.Shapes {
		r := rowOf(container)
		r.add(drifting, 0)
		if workload.Drifts(s) {
			r.add(drifting, 1)
		}
		r.add(outlierReplicas, float64(len(s.Outliers)))
		if s.Kind == shape.Climb && s.TimeToLimit[1] > 0 {
			r.add(timeToLimit, s.TimeToLimit[0].Seconds())
		}
	}
	for i := range f.Stalls {
		r := rowOf(f.Stalls[i].Container.Container)
		r.add(stalledPods, 0)
		if f.Stalls[i].Ended.IsZero() {
			r.add(stalledPods, 1)
		}
	}
	for i := range loans {
		if l := &loans[i]; l.Returned.IsZero() {
			rowOf(l.Container).add(loaned, float64(l.Extra()))
		}
	}
	m.gauges.set(w, rows)
}

func (r *row) addQuantity(which gauge, size *resource.Quantity) {
	if size != nil {
		r.add(which, float64(memory.FromQuantity(*size)))
	}
}

// forget removes the series of a workload.
func (m *Metrics) forget(w memory.WorkloadRef) {
	for _, c := range []*prometheus.CounterVec{m.kills, m.stalls, m.restarts, m.changes} {
		c.DeletePartialMatch(prometheus.Labels{"namespace": w.Namespace, "workload": label(w)})
	}
	m.gauges.set(w, nil)
}

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

// gauges holds the values of all gauges of all containers: one row per container. Labels are created on collection,
// because a GaugeVec would need about 450 bytes for each series, mostly for repeated labels.
type gauges struct {
	of [gaugeKinds]*prometheus.Desc

	mu   sync.Mutex
	rows map[labeled][]row
}

// labeled is a workload as in the labels of a series: without its API version.
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

// Describe implements [prometheus.Collector].
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
			pairs := []*dto.LabelPair{ // in alphabetical order, as Prometheus requires
				{Name: &labelContainer, Value: &r.container}, {Name: &labelNamespace, Value: &w.namespace},
				{Name: &labelWorkload, Value: &name},
			}
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

// series is the value of a gauge at collection. Constant metrics of client_golang would build labels for each series;
// with them, gathering 10,000 containers took three times as long (BenchmarkGather).
type series struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	value  *float64
}

// Desc implements [prometheus.Metric].
func (s *series) Desc() *prometheus.Desc { return s.desc }

func (s *series) Write(out *dto.Metric) error {
	out.Label, out.Gauge = s.labels, &dto.Gauge{Value: s.value}
	return nil
}
