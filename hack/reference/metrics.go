// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Metrics is a prometheus.Registerer that records the collectors of a program.
type Metrics struct{ collectors []prometheus.Collector }

// Register implements prometheus.Registerer.
func (m *Metrics) Register(c prometheus.Collector) error {
	m.collectors = append(m.collectors, c)
	return nil
}

// MustRegister implements prometheus.Registerer.
func (m *Metrics) MustRegister(all ...prometheus.Collector) {
	m.collectors = append(m.collectors, all...)
}

// Unregister implements prometheus.Registerer.
func (m *Metrics) Unregister(prometheus.Collector) bool { return false }

// Page returns the section about the registered metrics, sorted by name.
func (m *Metrics) Page() (string, error) {
	var rows [][]string
	for _, c := range m.collectors {
		kind := kindOf(c)
		for _, desc := range described(c) {
			family, err := sample(desc)
			if err != nil {
				return "", err
			}
			var labels []string
			for _, label := range family.Metric[0].Label {
				labels = append(labels, label.GetName())
			}
			rows = append(rows, []string{code(family.GetName()), kind, codes(labels), sentence(family.GetHelp())})
		}
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return "## Metrics\n\n" + table([]string{"metric", "type", "labels", "meaning"}, rows), nil
}

// kindOf returns the type of a metric. Other types, such as the collector in controllers/workload, are gauges.
func kindOf(c prometheus.Collector) string {
	switch c := c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.HistogramVec:
		return "histogram"
	case prometheus.Metric:
		var one dto.Metric
		switch err := c.Write(&one); {
		case err != nil:
		case one.Counter != nil:
			return "counter"
		case one.Histogram != nil:
			return "histogram"
		}
	}
	return "gauge"
}

func described(c prometheus.Collector) (all []*prometheus.Desc) {
	descs := make(chan *prometheus.Desc)
	go func() {
		c.Describe(descs)
		close(descs)
	}()
	for desc := range descs {
		all = append(all, desc)
	}
	return all
}

// maxLabels is more labels than any metric of memfit has.
const maxLabels = 8

// sample returns a series of a metric with synthetic label values: a Desc itself does not export its name, help and
// labels.
func sample(desc *prometheus.Desc) (*dto.MetricFamily, error) {
	for n := range maxLabels {
		values := slices.Repeat([]string{"any"}, n)
		metric, err := prometheus.NewConstMetric(desc, prometheus.UntypedValue, 0, values...)
		if err != nil {
			continue // the metric has another number of labels
		}
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(constant{desc, metric})
		families, err := registry.Gather()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", desc, err)
		}
		return families[0], nil
	}
	return nil, fmt.Errorf("%s has %d labels or more", desc, maxLabels)
}

// constant is a collector of one metric.
type constant struct {
	desc   *prometheus.Desc
	metric prometheus.Metric
}

// Describe implements prometheus.Collector.
func (c constant) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect implements prometheus.Collector.
func (c constant) Collect(out chan<- prometheus.Metric) { out <- c.metric }
