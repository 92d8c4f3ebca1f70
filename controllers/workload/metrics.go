// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rescue"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/shape"
	"github.com/memfit/memfit/internal/workload"
)

// Metrics of governed workloads. Their number is bounded by that of containers; they are removed with the workload.
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
		Help: "Changes of running pods (Resize, Evict, Rollback) and their outcomes (Resized, Replaced, NotResized, " +
			"Reverted, ConflictingWriter), by workload (Kind/name).",
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

// show sets the gauges of a workload from a step's result and its loans.
func (m *Metrics) show(w memory.WorkloadRef, f *workload.Effects, loans []rescue.Loan) {
	var rows []row
	of := func(container string) *row {
		i := slices.IndexFunc(rows, func(r row) bool { return r.container == container })
		if i < 0 {
			i, rows = len(rows), append(rows, row{container: container})
		}
		return &rows[i]
	}
	for i := range f.Status.Containers {
		c := &f.Status.Containers[i]
		r := of(c.Container)
		if c.Recommended != nil {
			r.size(recommendedLimit, c.Recommended.Limit)
		}
		r.size(currentLimit, c.Current.Limit)
		r.size(inUse, c.Usage)
	}
	for container, s := range f.Shapes {
		r := of(container)
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
		r := of(f.Stalls[i].Container.Container)
		r.add(stalledPods, 0)
		if f.Stalls[i].Ended.IsZero() {
			r.add(stalledPods, 1)
		}
	}
	for i := range loans {
		if l := &loans[i]; l.Returned.IsZero() {
			of(l.Container).add(loaned, float64(l.Extra()))
		}
	}
	m.gauges.set(w, rows)
}

// size sets a size if it is known.
func (r *row) size(which gauge, size *resource.Quantity) {
	if size != nil {
		r.add(which, float64(memory.FromQuantity(*size)))
	}
}

// forget removes the series of a workload that was deleted or is not governed any more.
func (m *Metrics) forget(w memory.WorkloadRef) {
	labels := prometheus.Labels{"namespace": w.Namespace, "workload": label(w)}
	m.kills.DeletePartialMatch(labels)
	m.stalls.DeletePartialMatch(labels)
	m.restarts.DeletePartialMatch(labels)
	m.changes.DeletePartialMatch(labels)
	m.gauges.set(w, nil)
}

func (m *Metrics) restarted(w memory.WorkloadRef) {
	m.restarts.WithLabelValues(w.Namespace, label(w)).Inc()
}

// stalled counts new stalls.
func (m *Metrics) stalled(w memory.WorkloadRef, began []memory.Stall) {
	for i := range began {
		m.stalls.WithLabelValues(w.Namespace, label(w), began[i].Container.Container).Inc()
	}
}
