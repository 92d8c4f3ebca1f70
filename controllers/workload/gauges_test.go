// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rescue"
	"github.com/memfit/memfit/internal/shape"
	"github.com/memfit/memfit/internal/workload"
)

// gathered is what a registry tells of gauges, without the help.
func gathered(t *testing.T, r *prometheus.Registry) string {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, f := range families {
		if f.Help = nil; f.GetName() == "memfit_reconciles_timed_out_total" {
			continue
		}
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// TestGaugesAsGathered: the registry takes what is shown, and only that; a size that is gone has no series, and neither
// has a workload that is forgotten. Two workloads that differ in nothing that series tell share them, because the
// registry refuses everything when two series have the same labels.
func TestGaugesAsGathered(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	m := NewMetrics(r)
	web := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	same := memory.WorkloadRef{APIVersion: "other/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	limit := resource.MustParse("256Mi")
	app := v1alpha1.ContainerRecommendation{Container: "app"}
	app.Current.Limit, app.Usage, app.Recommended = &limit, &limit, &v1alpha1.Size{Limit: &limit}

	shown := func(containers ...v1alpha1.ContainerRecommendation) *workload.Effects {
		return &workload.Effects{
			Status: v1alpha1.MemoryRecommendationStatus{Containers: containers},
			Shapes: map[string]shape.Shape{"app": {Outliers: []string{"web-1"}}},
		}
	}

	m.show(same, shown(app), nil)
	m.show(web, shown(app, v1alpha1.ContainerRecommendation{Container: "gone", Usage: &limit}), nil)
	app.Recommended = nil
	m.show(web, shown(app, v1alpha1.ContainerRecommendation{Container: "side", Usage: &limit}), []rescue.Loan{
		{Container: "side", From: memory.Size{Limit: memory.MiB}, To: memory.Size{Limit: 3 * memory.MiB}},
		{Container: "app", To: memory.Size{Limit: memory.MiB}, Returned: start},
	})
	want := `# TYPE memfit_current_limit_bytes gauge
memfit_current_limit_bytes{container="app",namespace="shop",workload="Deployment/web"} 2.68435456e+08
# TYPE memfit_loaned_bytes gauge
memfit_loaned_bytes{container="side",namespace="shop",workload="Deployment/web"} 2.097152e+06
# TYPE memfit_memory_drifting gauge
memfit_memory_drifting{container="app",namespace="shop",workload="Deployment/web"} 0
# TYPE memfit_outlier_replicas gauge
memfit_outlier_replicas{container="app",namespace="shop",workload="Deployment/web"} 1
# TYPE memfit_use_bytes gauge
memfit_use_bytes{container="app",namespace="shop",workload="Deployment/web"} 2.68435456e+08
memfit_use_bytes{container="side",namespace="shop",workload="Deployment/web"} 2.68435456e+08
`
	if diff := cmp.Diff(want, gathered(t, r)); diff != "" {
		t.Errorf("gathered (-want +got):\n%s", diff)
	}
	m.forget(web)
	if got := gathered(t, r); got != "" {
		t.Errorf("of a workload that is forgotten:\n%s", got)
	}
}

// BenchmarkGather is what it takes to ask for all series of 10,000 containers.
func BenchmarkGather(b *testing.B) {
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	limit := resource.MustParse("256Mi")
	app := v1alpha1.ContainerRecommendation{Container: "app", Usage: &limit, Recommended: &v1alpha1.Size{Limit: &limit}}
	app.Current.Limit = &limit
	for i := range 10_000 {
		w := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web-" + strconv.Itoa(i)}
		m.show(w, &workload.Effects{
			Status: v1alpha1.MemoryRecommendationStatus{Containers: []v1alpha1.ContainerRecommendation{app}},
			Shapes: map[string]shape.Shape{"app": {}},
		}, nil)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
