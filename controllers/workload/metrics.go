// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/shape"
	"github.com/memfit/memfit/internal/workload"
)

// Metrics are about governed workloads. Labels are bounded by the number of their containers, and go when the workload
// goes.
type Metrics struct {
	kills    *prometheus.CounterVec
	stalls   *prometheus.CounterVec
	restarts *prometheus.CounterVec
	changes  *prometheus.CounterVec
	givenUp  prometheus.Counter
	gauges   *gauges
}

// NewMetrics registers the controllers' metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		kills: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_oom_kills_total",
			Help: "OOM kills since memfit started, each counted once, by workload (Kind/name), container and kind.",
		}, []string{"namespace", "workload", "container", "kind"}),
		stalls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_workload_stalls_total",
			Help: "Memory stalls since memfit started, by workload (Kind/name) and container: the container thrashed just " +
				"below its limit and was not killed. OOM kills are not included.",
		}, []string{"namespace", "workload", "container"}),
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_drift_restarts_total",
			Help: "Pods evicted because their memory grows (drift.action: Restart), since memfit started.",
		}, []string{"namespace", "workload"}),
		gauges: newGauges(r),
	}
	m.changes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "memfit_changes_total",
		Help: "What was done to running pods (Resize, Evict, Rollback) and what became of it (Resized, Replaced, " +
			"NotResized, Reverted, ConflictingWriter), by workload (Kind/name).",
	}, []string{"namespace", "workload", "what"})
	m.givenUp = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "memfit_reconciles_given_up_total",
		Help: "Reconciles of a workload that were canceled after ten seconds.",
	})
	r.MustRegister(m.givenUp, m.kills, m.stalls, m.restarts, m.changes)
	return m
}

func (m *Metrics) gaveUp() { m.givenUp.Inc() }

// label is the workload in metrics: "Deployment/web", and "DaemonSet/log/m5.large" for a class of nodes.
func label(w memory.WorkloadRef) string { return w.Kind + "/" + w.Title() }

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
		return "Rollback"
	case a.Evict:
		return "Evict"
	}
	return "Resize"
}

// published shows what stands in the MemoryRecommendation.
func (m *Metrics) published(w memory.WorkloadRef, containers []v1alpha1.ContainerRecommendation) {
	for i := range containers {
		c := &containers[i]
		m.gauges.change(w, c.Container, func(r *row) {
			r.size(recommendedLimit, nil)
			if c.Recommended != nil {
				r.size(recommendedLimit, c.Recommended.Limit)
			}
			r.size(currentLimit, c.Current.Limit)
			r.size(inUse, c.Usage)
		})
	}
}

// size shows a size, and nothing while there is none.
func (r *row) size(which gauge, size *resource.Quantity) {
	if size == nil {
		r.hide(which)
		return
	}
	r.show(which, float64(memory.FromQuantity(*size)))
}

// forget drops the series of a workload that is gone or not governed any more.
func (m *Metrics) forget(w memory.WorkloadRef) {
	labels := prometheus.Labels{"namespace": w.Namespace, "workload": label(w)}
	m.kills.DeletePartialMatch(labels)
	m.stalls.DeletePartialMatch(labels)
	m.restarts.DeletePartialMatch(labels)
	m.changes.DeletePartialMatch(labels)
	m.gauges.forget(w)
}

// shaped shows what each container's memory does.
func (m *Metrics) shaped(w memory.WorkloadRef, shapes map[string]shape.Shape) {
	for container, s := range shapes {
		m.gauges.change(w, container, func(r *row) {
			r.show(drifting, 0)
			if workload.Drifts(s) {
				r.show(drifting, 1)
			}
			r.show(outlierReplicas, float64(len(s.Outliers)))
			r.hide(timeToLimit)
			if s.Kind == shape.Climb && s.TimeToLimit[1] > 0 {
				r.show(timeToLimit, s.TimeToLimit[0].Seconds())
			}
		})
	}
}

func (m *Metrics) restarted(w memory.WorkloadRef) {
	m.restarts.WithLabelValues(w.Namespace, label(w)).Inc()
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
		m.gauges.change(w, name, func(r *row) { r.show(stalledPods, n) })
	}
}
