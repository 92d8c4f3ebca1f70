// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/signals"
	"github.com/memfit/memfit/internal/workload"
)

// Metrics are about governed workloads. Labels are bounded by the number of their containers, and go when the workload
// goes.
type Metrics struct {
	kills       *prometheus.CounterVec
	stalls      *prometheus.CounterVec
	stalling    *prometheus.GaugeVec
	sizes       sizes
	drifting    *prometheus.GaugeVec
	timeToLimit *prometheus.GaugeVec
	outliers    *prometheus.GaugeVec
	restarts    *prometheus.CounterVec
	changes     *prometheus.CounterVec
	givenUp     prometheus.Counter
}

// NewMetrics registers the controllers' metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		kills: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_oom_kills_total",
			Help: "OOM kills counted since memfit started, each once, by workload (Kind/name), container and kind.",
		}, []string{"namespace", "workload", "container", "kind"}),
		sizes: newSizes(r),
	}
	m.registerStalls(r)
	m.changes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "memfit_changes_total",
		Help: "What was done to running pods (Resize, Evict, TakeBack) and what became of it (Resized, Replaced, " +
			"NotResized, Reverted, ForeignWriter), by workload (Kind/name).",
	}, []string{"namespace", "workload", "what"})
	m.givenUp = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "memfit_reconciles_given_up_total",
		Help: "Reconciles of a workload that took longer than ten seconds and were given up.",
	})
	r.MustRegister(m.givenUp, m.kills, m.changes)
	m.registerShapes(r)
	return m
}

func (m *Metrics) gaveUp() { m.givenUp.Inc() }

// label is the workload as it stands in metrics: "Deployment/web".
func label(w memory.WorkloadRef) string { return w.Kind + "/" + w.Name }

func (m *Metrics) killed(w memory.WorkloadRef, kills []memory.OOMKill) {
	for i := range kills {
		m.kills.WithLabelValues(w.Namespace, label(w), kills[i].Container.Container, string(kills[i].Kind)).Inc()
	}
}

func (m *Metrics) applied(w memory.WorkloadRef, what string) {
	m.changes.WithLabelValues(w.Namespace, label(w), what).Inc()
}

func actionName(a rollout.Action) string {
	switch {
	case a.Undo:
		return "TakeBack"
	case a.Evict:
		return "Evict"
	}
	return "Resize"
}

// sizes are the published sizes of containers.
type sizes struct{ recommended, current, use *prometheus.GaugeVec }

func newSizes(r prometheus.Registerer) sizes {
	gauge := func(name, help string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(
			prometheus.GaugeOpts{Name: name, Help: help}, []string{"namespace", "workload", "container"},
		)
		r.MustRegister(g)
		return g
	}
	return sizes{
		recommended: gauge(
			"memfit_recommended_limit_bytes", "Memory limit recommended for a container; absent while memfit holds.",
		),
		current: gauge(
			"memfit_current_limit_bytes", "Memory limit that running pods have now; absent where they have none.",
		),
		use: gauge(
			"memfit_use_bytes", "The most that one running replica of a container used in the last two hours at most (use in "+
				"its MemoryRecommendation): anonymous memory, or the working set where the source knows nothing else.",
		),
	}
}

// published shows what stands in the MemoryRecommendation.
func (m *Metrics) published(w memory.WorkloadRef, containers []v1alpha1.ContainerRecommendation) {
	workload := label(w)
	for i := range containers {
		c := &containers[i]
		var recommended *resource.Quantity
		if c.Recommended != nil {
			recommended = c.Recommended.Limit
		}
		show(m.sizes.recommended, recommended, w.Namespace, workload, c.Container)
		show(m.sizes.current, c.Current.Limit, w.Namespace, workload, c.Container)
		show(m.sizes.use, c.Use, w.Namespace, workload, c.Container)
	}
}

// show sets a series to a size, and drops it while there is none.
func show(g *prometheus.GaugeVec, size *resource.Quantity, labels ...string) {
	if size == nil {
		g.DeleteLabelValues(labels...)
		return
	}
	g.WithLabelValues(labels...).Set(float64(memory.FromQuantity(*size)))
}

// forget drops the series of a workload that is gone or not governed any more.
func (m *Metrics) forget(w memory.WorkloadRef) {
	labels := prometheus.Labels{"namespace": w.Namespace, "workload": label(w)}
	m.kills.DeletePartialMatch(labels)
	m.stalls.DeletePartialMatch(labels)
	m.stalling.DeletePartialMatch(labels)
	m.sizes.recommended.DeletePartialMatch(labels)
	m.sizes.current.DeletePartialMatch(labels)
	m.sizes.use.DeletePartialMatch(labels)
	m.drifting.DeletePartialMatch(labels)
	m.timeToLimit.DeletePartialMatch(labels)
	m.outliers.DeletePartialMatch(labels)
	m.restarts.DeletePartialMatch(labels)
	m.changes.DeletePartialMatch(labels)
}

func (m *Metrics) registerShapes(r prometheus.Registerer) {
	perContainer := []string{"namespace", "workload", "container"}
	m.drifting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "memfit_memory_drifting",
		Help: "1 while a container's memory climbs or keeps what it took (shape Climb or StepRetention, of at least Medium " +
			"confidence), else 0.",
	}, perContainer)
	m.timeToLimit = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "memfit_memory_time_to_limit_seconds",
		Help: "Least time until a climbing container reaches its limit; absent while it does not climb.",
	}, perContainer)
	m.outliers = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "memfit_outlier_replicas",
		Help: "Pods whose memory is far above that of their replicas (at most 5 are named in status).",
	}, perContainer)
	m.restarts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "memfit_drift_restarts_total",
		Help: "Pods evicted before the kernel killed them (drift.action: Restart), since memfit started.",
	}, []string{"namespace", "workload"})
	r.MustRegister(m.drifting, m.timeToLimit, m.outliers, m.restarts)
}

// shaped shows what each container's memory does.
func (m *Metrics) shaped(w memory.WorkloadRef, shapes map[string]signals.Shape) {
	for container, s := range shapes {
		labels := []string{w.Namespace, label(w), container}
		drifting := 0.0
		if workload.Drifts(s) {
			drifting = 1
		}
		m.drifting.WithLabelValues(labels...).Set(drifting)
		m.outliers.WithLabelValues(labels...).Set(float64(len(s.Outliers)))
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
