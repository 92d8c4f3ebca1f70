// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	lending "github.com/memfit/memfit/internal/rescue"
	"github.com/memfit/memfit/internal/workload"
)

// Outcomes of alarms, besides the causes of refusals: values of the label "outcome" of memfit_rescues_total.
const (
	outcomeLent    = "Lent"
	outcomeRefused = "ResizeRefused"
	outcomeFailed  = "Failed"
	outcomeChanged = "PodChanged" // the pod was resized meanwhile
	outcomeForeign = "OtherPod"   // the snapshot is about another pod with this name, or from the agent of another node
)

// Metrics has the metrics of alarms.
type Metrics struct {
	rescues *prometheus.CounterVec
	sent    prometheus.Histogram
}

// NewMetrics registers the metrics of rescues.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		rescues: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memfit_rescues_total",
			Help: "Alarms of agents that a container is about to reach its limit, by result: Lent, or the reason for no " +
				"loan.",
		}, []string{"namespace", "outcome"}),
		sent: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "memfit_rescue_sent_seconds",
			Help:    "Time from an alarm, by the clock of its node, until the API server had accepted the higher limit.",
			Buckets: []float64{.025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2, 5, 10},
		}),
	}
	r.MustRegister(m.rescues, m.sent)
	return m
}

func (m *Metrics) count(pod metav1.Object, outcome string) {
	m.rescues.WithLabelValues(pod.GetNamespace(), outcome).Inc()
}

func (c *Controller) lent(ctx context.Context, a *alarm) {
	now := c.Clock.Now()
	c.Metrics.count(a.pod, outcomeLent)
	c.Metrics.sent.Observe(max(now.Sub(a.At), 0).Seconds())
	logf.FromContext(ctx).Info("Lent memory", "pod", a.pod.Namespace+"/"+a.pod.Name, "container", a.Container,
		"from", a.loan.From.Limit.String(), "to", a.loan.To.Limit.String(), "sequence", a.Sequence,
		"alarmAge", a.began.Sub(a.At).Round(time.Millisecond).String(),
		"took", now.Sub(a.began).Round(time.Millisecond).String())
	c.Recorder.Record(a.owner, workload.MemoryLoaned(a.owner, a.pod, a.Container, a.loan.Note(&a.Alarm)))
}

// refused reports a refused loan. It writes an Event if users can act on the cause: then the refusal has a note.
func (c *Controller) refused(ctx context.Context, a *alarm) {
	c.Metrics.count(a.pod, string(a.refusal.Cause))
	logf.FromContext(ctx).V(1).Info("Refused a loan", "pod", a.pod.Namespace+"/"+a.pod.Name, "container", a.Container,
		"cause", a.refusal.Cause, "sequence", a.Sequence)
	if note := a.refusal.Note(); note != "" {
		c.warnOfKill(a, a.refusal.Cause, note)
	}
}

func (c *Controller) refusedByServer(ctx context.Context, a *alarm, why string) {
	c.Metrics.count(a.pod, outcomeRefused)
	logf.FromContext(ctx).Info("The API server refused a loan", "pod", a.pod.Namespace+"/"+a.pod.Name,
		"container", a.Container, "why", why)
	left := max(a.Kill().Sub(c.Clock.Now()), 0)
	c.warnOfKill(a, lending.Cause(outcomeRefused), fmt.Sprintf("container %s reaches its limit of %s in about %.1f s and "+
		"gets no loan: %s", a.Container, a.Limit, left.Seconds(), why))
}

// warnOfKill writes an Event about an expected OOM kill, once in warnEvery for each cause.
func (c *Controller) warnOfKill(a *alarm, cause lending.Cause, note string) {
	key := warning{a.pod.UID, a.Container, cause}
	if _, warned := c.warned.Get(key); warned {
		return
	}
	c.warned.Add(key, nil, warnEvery)
	c.Recorder.Record(a.owner, workload.OOMExpected(a.owner, a.pod, a.Container, note))
}
