// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/internal/memory"
)

// mib is a size in MiB.
func mib(request, limit memory.Bytes) memory.Size {
	return memory.Size{Request: request * memory.MiB, Limit: limit * memory.MiB}
}

// TestFit: a container app of 128Mi (limit 256Mi), alone in its pod, is to have 512Mi (limit 1000Mi) unless the row
// has others.
func TestFit(t *testing.T) {
	type amounts = map[corev1.ResourceName][2]string
	ranges := func(items ...corev1.LimitRangeItem) Objects {
		return Objects{LimitRanges: []corev1.LimitRange{limitRange("bounds", items...)}}
	}
	quotas := func(a amounts, scopes ...corev1.ResourceQuotaScope) Objects {
		return Objects{Quotas: []corev1.ResourceQuota{quota("q", a, scopes...)}}
	}
	whole := func(p *corev1.Pod, request, limit string) *corev1.Pod {
		p.Spec.Resources = new(container("", request, limit).Resources)
		return p
	}
	app := func() corev1.Container { return container("app", "128Mi", "256Mi") }
	for name, tc := range map[string]struct {
		pod     *corev1.Pod // nil: app alone
		objects Objects
		base    memory.Size // zero: 128Mi, 256Mi
		ask     memory.Size // zero: 512Mi, 1000Mi
		equal   bool
		refused memory.Bytes
		want    memory.Size
		why     string // part of the reason; empty: there is none
	}{
		"nobody has a say": {want: mib(512, 1000)},
		"a LimitRange that allows it": {
			objects: ranges(item(corev1.LimitTypeContainer, "64Mi", "1000Mi", "2")), want: mib(512, 1000),
		},
		"its maximum": {
			objects: ranges(item(corev1.LimitTypeContainer, "", "600Mi", "")), want: mib(512, 600),
			why: "limit 600Mi instead of 1000Mi: LimitRange bounds has a maximum of 600Mi for a container",
		},
		"its maximum, below the request": {
			objects: ranges(item(corev1.LimitTypeContainer, "", "300Mi", "")), want: mib(300, 300),
			why: "limit 300Mi instead of 1000Mi, request 300Mi instead of 512Mi",
		},
		"its minimum": {
			objects: ranges(item(corev1.LimitTypeContainer, "100Mi", "", "")), ask: mib(32, 64), want: mib(100, 100),
			why: "a minimum of 100Mi",
		},
		"its ratio": {
			objects: ranges(item(corev1.LimitTypeContainer, "", "", "1500m")), want: mib(667, 1000),
			why: "request 667Mi instead of 512Mi: LimitRange bounds has a maxLimitRequestRatio of 1.5",
		},
		"its ratio and its maximum": {
			objects: ranges(item(corev1.LimitTypeContainer, "", "600Mi", "1")), want: mib(600, 600),
			why: "a maximum of 600Mi, a maxLimitRequestRatio of 1",
		},
		"its maximum for a pod": {
			objects: ranges(item(corev1.LimitTypePod, "", "700Mi", "")), want: mib(512, 700),
			why: "LimitRange bounds has a maximum of 700Mi for a pod",
		},
		"the same beside another": {
			objects: ranges(item(corev1.LimitTypePod, "", "700Mi", "")), pod: pod(app(), container("log", "32Mi", "100Mi")),
			want: mib(512, 600), why: "a maximum of 700Mi for a pod",
		},
		"its minimum for a pod": {
			objects: ranges(item(corev1.LimitTypePod, "200Mi", "", "")), base: mib(256, 256), ask: mib(32, 64),
			want: mib(256, 256), why: "below the minimum of 200Mi in LimitRange bounds",
		},
		"its ratio for a pod": {
			objects: ranges(item(corev1.LimitTypePod, "", "", "2")), ask: mib(200, 1000), want: mib(128, 256),
			why: "the maxLimitRequestRatio in LimitRange bounds",
		},
		"what it refuses anyway": {
			objects: ranges(item(corev1.LimitTypeContainer, "", "600Mi", "")), pod: pod(app(), container("big", "", "700Mi")),
			want: mib(512, 600), why: "a maximum of 600Mi",
		},
		"a quota with room": {
			objects: quotas(amounts{"limits.memory": {"4Gi", "3Gi"}, "requests.memory": {"1Gi", "512Mi"}}), want: mib(512, 1000),
		},
		"without room for the limit": {
			objects: quotas(amounts{"limits.memory": {"4Gi", "3200Mi"}}), want: mib(128, 256),
			why: "limit 256Mi instead of 1000Mi, request 128Mi instead of 512Mi: ResourceQuota q leaves 896Mi of " +
				"limits.memory, but the pod would need 1000Mi",
		},
		"without room beside others": {
			objects: quotas(amounts{"limits.memory": {"4Gi", "3Gi"}}), pod: pod(app(), container("log", "32Mi", "100Mi")),
			want: mib(128, 256), why: "the pod would need 1.1Gi",
		},
		"without room for the request": {
			objects: quotas(amounts{"requests.memory": {"1Gi", "600Mi"}}), want: mib(128, 1000),
			why: "request 128Mi instead of 512Mi: ResourceQuota q leaves 424Mi of requests.memory",
		},
		"the same, and they must be equal": {
			objects: quotas(amounts{"requests.memory": {"1Gi", "600Mi"}}), base: mib(256, 256), ask: mib(1000, 1000),
			equal: true, want: mib(256, 256), why: "ResourceQuota q leaves 424Mi of requests.memory",
		},
		"nothing left, but less is asked": {
			objects: quotas(amounts{"limits.memory": {"4Gi", "3968Mi"}}), ask: mib(64, 128), want: mib(64, 128),
		},
		"nothing left at all": {
			objects: quotas(amounts{"limits.memory": {"4Gi", "4Gi"}}), want: mib(128, 256),
			why: "leaves nothing of limits.memory",
		},
		"a quota for other pods": {
			objects: quotas(amounts{"limits.memory": {"4Gi", "4Gi"}}, corev1.ResourceQuotaScopeTerminating),
			want:    mib(512, 1000),
		},
		"nodes large enough": {objects: Objects{Nodes: Nodes{LargestNode: 600 * memory.MiB}}, want: mib(512, 1000)},
		"nodes too small": {
			objects: Objects{Nodes: Nodes{LargestNode: 500 * memory.MiB}}, want: mib(128, 1000),
			why: "request 128Mi instead of 512Mi: the pod would request 512Mi, but the largest node has only 500Mi allocatable",
		},
		"too small, and must be equal": {
			objects: Objects{Nodes: Nodes{LargestNode: 500 * memory.MiB}}, equal: true, base: mib(256, 256),
			ask: mib(1000, 1000), want: mib(256, 256), why: "the largest node has only 500Mi",
		},
		"no node takes as much": {
			refused: 512 * memory.MiB, want: mib(128, 1000),
			why: "request 128Mi instead of 512Mi: a pod that requests 512Mi was unschedulable",
		},
		"none took more": {refused: 513 * memory.MiB, want: mib(512, 1000)},
		"none takes as much with the runtime's": {
			refused: 612 * memory.MiB, want: mib(128, 1000), why: "a pod that requests 612Mi was unschedulable",
			pod: &corev1.Pod{
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{app()},
					Overhead:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")},
				},
			},
		},
		"none takes as much, but less is asked": {refused: 60 * memory.MiB, ask: mib(64, 256), want: mib(64, 256)},
		"none takes as much, and must be equal": {
			refused: 400 * memory.MiB, equal: true, base: mib(256, 256), ask: mib(512, 512), want: mib(256, 256),
			why: "was unschedulable",
		},
		"too small for pod and runtime": {
			objects: Objects{Nodes: Nodes{LargestNode: 600 * memory.MiB}}, want: mib(128, 1000),
			why: "the pod would request 612Mi",
			pod: &corev1.Pod{
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{app()},
					Overhead:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")},
				},
			},
		},
		"the request left breaks the ratio": {
			objects: Objects{
				Nodes:       Nodes{LargestNode: 500 * memory.MiB},
				LimitRanges: ranges(item(corev1.LimitTypeContainer, "", "", "2")).LimitRanges,
			},
			want: mib(128, 256),
			why:  "another size would be refused: container app: limit 1000Mi is more than 2 times the request 128Mi",
		},
		"the limit of the whole pod": {
			pod: whole(pod(app(), container("log", "32Mi", "")), "", "512Mi"), want: mib(480, 512),
			why: "limit 512Mi instead of 1000Mi: the whole pod keeps its limit of 512Mi (spec.resources.limits.memory): the " +
				"limit of the whole pod is the only limit of container log, whose need is unknown",
		},
		"its request": {
			pod: whole(pod(app(), container("log", "32Mi", "")), "300Mi", "2Gi"), want: mib(268, 1000),
			why: "request 268Mi instead of 512Mi: the whole pod keeps 300Mi for all requests (spec.resources.requests.memory)",
		},
		"a whole pod that follows": {pod: whole(pod(app()), "300Mi", "512Mi"), want: mib(512, 1000)},
		"no limit but the whole pod's": {
			pod: whole(pod(container("app", "128Mi", "")), "", "512Mi"), base: mib(128, 0), want: mib(128, 0),
			why: "the whole pod keeps its size: the need of the container is unknown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, base, ask := tc.pod, tc.base, tc.ask
			if p == nil {
				p = pod(app())
			}
			if base == (memory.Size{}) {
				base = mib(128, 256)
			}
			if ask == (memory.Size{}) {
				ask = mib(512, 1000)
			}
			f := FactsOf(memory.WorkloadRef{}, nil, p, tc.objects)
			f.Refused = tc.refused
			asks := []DesiredSize{{Container: "app", Base: base, Want: ask, Equal: tc.equal}}
			got := fitOne(&f, p, asks)
			if got.Size != tc.want {
				t.Errorf(
					"fitted to request %s, limit %s, want %s, %s (%q)", got.Request, got.Limit, tc.want.Request, tc.want.Limit,
					got.Why,
				)
			}
			if text := strings.Join(got.Why, "; "); !strings.Contains(text, tc.why) || tc.why == "" && text != "" {
				t.Errorf("why is %q, want %q in it", text, tc.why)
			}
			asks[0].Want = got.Size
			if again := fitOne(&f, p, asks); again.Size != got.Size {
				t.Errorf("fitted again it is request %s, limit %s", again.Request, again.Limit)
			}
		})
	}
}

func fitOne(f *Facts, p *corev1.Pod, asks []DesiredSize) FittedSize {
	got, _ := f.Fit(p, Whole{Size: WholeSize(p)}, asks)
	return got[0]
}

// TestTheLastContainersGiveFirst: what is too much for the pod is taken from the end, so that the application keeps
// what it needs.
func TestTheLastContainersGiveFirst(t *testing.T) {
	p := pod(container("app", "100Mi", "100Mi"), container("proxy", "50Mi", "50Mi"))
	f := FactsOf(memory.WorkloadRef{}, nil, p, Objects{
		LimitRanges: []corev1.LimitRange{limitRange("bounds", item(corev1.LimitTypePod, "", "400Mi", ""))},
	})
	got, _ := f.Fit(
		p, Whole{},
		[]DesiredSize{
			{Container: "app", Base: mib(100, 100), Want: mib(300, 300)},
			{Container: "proxy", Base: mib(50, 50), Want: mib(150, 200)},
		},
	)
	if got[0].Size != mib(300, 300) || got[1].Size != mib(100, 100) {
		t.Errorf("app gets %+v and proxy %+v, want 300Mi and 100Mi", got[0], got[1])
	}
}
