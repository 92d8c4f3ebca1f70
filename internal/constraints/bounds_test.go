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

// TestRangeOfContainers: what is left for a container when all LimitRanges of a namespace hold.
func TestRangeOfContainers(t *testing.T) {
	for name, tc := range map[string]struct {
		ranges []corev1.LimitRange
		want   Range
	}{
		"none": {},
		"about CPU only": {
			ranges: []corev1.LimitRange{limitRange("cpu", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer})},
		},
		"about pods only": {ranges: []corev1.LimitRange{limitRange("pods", item(corev1.LimitTypePod, "", "1Gi", ""))}},
		"about claims only": {
			ranges: []corev1.LimitRange{limitRange("disk", item(corev1.LimitTypePersistentVolumeClaim, "1Gi", "2Gi", ""))},
		},
		"minimum and maximum": {
			ranges: []corev1.LimitRange{limitRange("a", item(corev1.LimitTypeContainer, "64Mi", "1Gi", ""))},
			want:   Range{Name: "a", Min: 64 * memory.MiB, Max: memory.GiB},
		},
		"the tighter of two": {
			ranges: []corev1.LimitRange{
				limitRange("b", item(corev1.LimitTypeContainer, "32Mi", "1Gi", "")),
				limitRange("a", item(corev1.LimitTypeContainer, "64Mi", "512Mi", "")),
			},
			want: Range{Name: "a", Min: 64 * memory.MiB, Max: 512 * memory.MiB},
		},
		"one bound of each": {
			ranges: []corev1.LimitRange{
				limitRange("b", item(corev1.LimitTypeContainer, "128Mi", "", "")),
				limitRange("a", item(corev1.LimitTypeContainer, "", "512Mi", "")),
			},
			want: Range{Name: "b and a", Min: 128 * memory.MiB, Max: 512 * memory.MiB},
		},
		"two items of one": {
			ranges: []corev1.LimitRange{
				limitRange(
					"a", item(corev1.LimitTypeContainer, "64Mi", "1Gi", ""), item(corev1.LimitTypeContainer, "96Mi", "2Gi", ""),
				),
			},
			want: Range{Name: "a", Min: 96 * memory.MiB, Max: memory.GiB},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FactsOf(web, nil, nil, Objects{LimitRanges: tc.ranges}).Range; got != tc.want {
				t.Errorf("range is %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestTheMostThatLimitRangesAdmit: the container has 128Mi of 256Mi, and another one of its pod 256Mi.
func TestTheMostThatLimitRangesAdmit(t *testing.T) {
	for name, tc := range map[string]struct {
		item corev1.LimitRangeItem
		want memory.Bytes
		why  string
	}{
		"anything":  {item(corev1.LimitTypeContainer, "", "", ""), memory.GiB, ""},
		"a maximum": {item(corev1.LimitTypeContainer, "", "300Mi", ""), 300 * memory.MiB, "is above the maximum of 300Mi"},
		"a maximum of the pod": {
			item(corev1.LimitTypePod, "", "600Mi", ""), 344 * memory.MiB, "all containers of the pod together: limit 1.3Gi",
		},
		"a ratio": {item(corev1.LimitTypeContainer, "", "", "3"), 384 * memory.MiB, "the maxLimitRequestRatio"},
		"nothing": {item(corev1.LimitTypeContainer, "", "", "1.5"), 256 * memory.MiB, "the maxLimitRequestRatio"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod(container("app", "128Mi", "256Mi"), container("side", "128Mi", "256Mi"))
			f := FactsOf(web, nil, p, Objects{LimitRanges: []corev1.LimitRange{limitRange("r", tc.item)}})
			got, why := HighestAccepted(256*memory.MiB, memory.GiB, func(limit memory.Bytes) string {
				return f.Refusal(p, map[string]memory.Size{"app": {Request: 128 * memory.MiB, Limit: limit}})
			})
			if got != tc.want || !strings.Contains(why, tc.why) || (why == "") != (tc.why == "") {
				t.Errorf("at most %s, because %q; want %s", got, why, tc.want)
			}
		})
	}
}

// TestRefusalByLimitRange: the pod has a container app (128Mi of 256Mi) and what else is in the row; app is to get a
// new size.
func TestRefusalByLimitRange(t *testing.T) {
	sidecar := container("proxy", "32Mi", "64Mi")
	sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	podLevel := pod()
	podLevel.Spec.Resources = new(container("", "100Mi", "300Mi").Resources)
	app := memory.Size{Request: 256 * memory.MiB, Limit: 512 * memory.MiB}
	for name, tc := range map[string]struct {
		item corev1.LimitRangeItem
		pod  *corev1.Pod // nil: app alone
		size memory.Size // zero: app
		want string
	}{
		"it fits": {item: item(corev1.LimitTypeContainer, "64Mi", "512Mi", "2")},
		"above": {
			item: item(corev1.LimitTypeContainer, "", "500Mi", ""),
			want: "container app: limit 512Mi is above the maximum of 500Mi in LimitRange bounds",
		},
		"below": {
			item: item(corev1.LimitTypeContainer, "300Mi", "", ""),
			want: "container app: request 256Mi is below the minimum of 300Mi in LimitRange bounds",
		},
		"limit alone": {item: item(corev1.LimitTypeContainer, "300Mi", "", ""), size: memory.Size{Limit: 400 * memory.MiB}},
		"request above": {
			item: item(corev1.LimitTypeContainer, "300Mi", "", ""),
			size: memory.Size{Request: 310 * memory.MiB, Limit: 290 * memory.MiB},
			want: "container app: limit 290Mi is below the minimum of 300Mi in LimitRange bounds",
		},
		"ratio": {
			item: item(corev1.LimitTypeContainer, "", "", "1500m"),
			want: "container app: limit 512Mi is more than 1.5 times the request 256Mi, the maxLimitRequestRatio in " +
				"LimitRange bounds",
		},
		"ratio, no limit": {
			item: item(corev1.LimitTypeContainer, "", "", "2"), size: memory.Size{Request: memory.MiB},
			want: "container app: request and limit are both needed, because the limit may be at most 2 times the request in " +
				"LimitRange bounds",
		},
		"no limit": {
			item: item(corev1.LimitTypeContainer, "", "1Gi", ""), size: memory.Size{Request: memory.MiB},
			want: "container app: no limit is set, and the maximum is 1Gi in LimitRange bounds",
		},
		"another container": {
			item: item(corev1.LimitTypeContainer, "", "600Mi", ""),
			pod:  pod(container("app", "128Mi", "256Mi"), container("big", "", "700Mi")),
			want: "container big: limit 700Mi is above the maximum of 600Mi in LimitRange bounds",
		},
		"an init container": {
			item: item(corev1.LimitTypeContainer, "", "600Mi", ""),
			pod:  &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{container("setup", "", "700Mi")}}},
			want: "container setup: limit 700Mi is above the maximum of 600Mi in LimitRange bounds",
		},
		"the pod's sum": {
			item: item(corev1.LimitTypePod, "", "600Mi", ""),
			pod:  pod(container("app", "128Mi", "256Mi"), container("log", "64Mi", "100Mi")),
			want: "all containers of the pod together: limit 612Mi is above the maximum of 600Mi in LimitRange bounds",
		},
		"a native sidecar counts": {
			item: item(corev1.LimitTypePod, "", "575Mi", ""),
			pod: &corev1.Pod{
				Spec: corev1.PodSpec{
					InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{container("app", "1Mi", "2Mi")},
				},
			},
			want: "all containers of the pod together: limit 576Mi is above the maximum of 575Mi in LimitRange bounds",
		},
		"an init container beside a sidecar is the most": {
			item: item(corev1.LimitTypePod, "", "1Gi", ""),
			pod: &corev1.Pod{
				Spec: corev1.PodSpec{
					InitContainers: []corev1.Container{sidecar, container("setup", "1Gi", "1Gi")},
					Containers:     []corev1.Container{container("app", "1Mi", "2Mi")},
				},
			},
			want: "all containers of the pod together: limit 1.1Gi is above the maximum of 1Gi in LimitRange bounds",
		},
		"the pod's own size": {
			item: item(corev1.LimitTypePod, "", "256Mi", ""), pod: podLevel,
			want: "all containers of the pod together: limit 300Mi is above the maximum of 256Mi in LimitRange bounds",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, size := tc.pod, tc.size
			if p == nil {
				p = pod(container("app", "128Mi", "256Mi"))
			}
			if size == (memory.Size{}) {
				size = app
			}
			f := FactsOf(web, []string{"app"}, p, Objects{LimitRanges: []corev1.LimitRange{limitRange("bounds", tc.item)}})
			if got := f.Refusal(p, map[string]memory.Size{"app": size}); got != tc.want {
				t.Errorf("refusal is %q, want %q", got, tc.want)
			}
		})
	}
}

// TestQuotas: what is left for the pod, in the tightest quota that counts it.
func TestQuotas(t *testing.T) {
	type amounts = map[corev1.ResourceName][2]string
	selector := func(
		q corev1.ResourceQuota, operator corev1.ScopeSelectorOperator, values ...string,
	) corev1.ResourceQuota {
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
			ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values,
		}}}
		return q
	}
	limits := amounts{"limits.memory": {"4Gi", "3Gi"}}
	left := Quota{Name: "q", Limits: memory.GiB}
	for name, tc := range map[string]struct {
		quotas []corev1.ResourceQuota
		edit   func(*corev1.Pod)
		noPod  bool
		want   Quota
	}{
		"none":          {},
		"about objects": {quotas: []corev1.ResourceQuota{quota("q", amounts{"pods": {"10", "3"}})}},
		"limits":        {quotas: []corev1.ResourceQuota{quota("q", limits)}, want: left},
		"requests": {
			quotas: []corev1.ResourceQuota{quota("q", amounts{"requests.memory": {"4Gi", "3584Mi"}})},
			want:   Quota{Name: "q", Requests: 512 * memory.MiB},
		},
		"requests, old name": {
			quotas: []corev1.ResourceQuota{quota("q", amounts{"memory": {"4Gi", "3Gi"}})},
			want:   Quota{Name: "q", Requests: memory.GiB},
		},
		"nothing left": {
			quotas: []corev1.ResourceQuota{quota("q", amounts{"limits.memory": {"4Gi", "4Gi"}})},
			want:   Quota{Name: "q", Limits: Exhausted},
		},
		"overdrawn": {
			quotas: []corev1.ResourceQuota{quota("q", amounts{"limits.memory": {"1Gi", "4Gi"}})},
			want:   Quota{Name: "q", Limits: Exhausted},
		},
		"not counted yet": {quotas: []corev1.ResourceQuota{quota("q", amounts{"limits.memory": {"1Gi", ""}})}},
		"the tightest": {
			quotas: []corev1.ResourceQuota{quota("wide", amounts{"limits.memory": {"9Gi", "3Gi"}}), quota("q", limits)},
			want:   left,
		},
		"one for each": {
			quotas: []corev1.ResourceQuota{quota("r", amounts{"requests.memory": {"2Gi", "1Gi"}}), quota("l", limits)},
			want:   Quota{Name: "l and r", Limits: memory.GiB, Requests: memory.GiB},
		},
		"for jobs, and this is none": {
			quotas: []corev1.ResourceQuota{quota("q", limits, corev1.ResourceQuotaScopeTerminating)},
		},
		"for jobs, and this is one": {
			quotas: []corev1.ResourceQuota{quota("q", limits, corev1.ResourceQuotaScopeTerminating)},
			edit:   func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(60)) }, want: left,
		},
		"for what stays": {
			quotas: []corev1.ResourceQuota{quota("q", limits, corev1.ResourceQuotaScopeNotTerminating)}, want: left,
		},
		"for best effort": {
			quotas: []corev1.ResourceQuota{quota("q", limits, corev1.ResourceQuotaScopeBestEffort)},
		},
		"for best effort, as it is": {
			quotas: []corev1.ResourceQuota{quota("q", limits, corev1.ResourceQuotaScopeBestEffort)},
			edit:   func(p *corev1.Pod) { p.Status.QOSClass = corev1.PodQOSBestEffort }, want: left,
		},
		"for all but best effort": {
			quotas: []corev1.ResourceQuota{quota("q", limits, corev1.ResourceQuotaScopeNotBestEffort)}, want: left,
		},
		"all scopes have to match": {
			quotas: []corev1.ResourceQuota{
				quota("q", limits, corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopeTerminating),
			},
		},
		"for pods with a priority": {
			quotas: []corev1.ResourceQuota{quota("q", limits, corev1.ResourceQuotaScopePriorityClass)},
		},
		"its priority": {
			quotas: []corev1.ResourceQuota{selector(quota("q", limits), corev1.ScopeSelectorOpIn, "high")},
			edit:   func(p *corev1.Pod) { p.Spec.PriorityClassName = "high" }, want: left,
		},
		"another priority": {
			quotas: []corev1.ResourceQuota{selector(quota("q", limits), corev1.ScopeSelectorOpIn, "high")},
			edit:   func(p *corev1.Pod) { p.Spec.PriorityClassName = "low" },
		},
		"all priorities but one": {
			quotas: []corev1.ResourceQuota{selector(quota("q", limits), corev1.ScopeSelectorOpNotIn, "high")}, want: left,
		},
		"no priority at all": {
			quotas: []corev1.ResourceQuota{selector(quota("q", limits), corev1.ScopeSelectorOpDoesNotExist)}, want: left,
		},
		"any priority": {
			quotas: []corev1.ResourceQuota{selector(quota("q", limits), corev1.ScopeSelectorOpExists)},
			edit:   func(p *corev1.Pod) { p.Spec.PriorityClassName = "low" }, want: left,
		},
		"an operator nobody knows": {quotas: []corev1.ResourceQuota{selector(quota("q", limits), "Like", "high")}},
		"a scope nobody knows":     {quotas: []corev1.ResourceQuota{quota("q", limits, "PhaseOfTheMoon")}},
		"no pod to ask, no scope":  {quotas: []corev1.ResourceQuota{quota("q", limits)}, noPod: true, want: left},
		"no pod to ask, a scope": {
			quotas: []corev1.ResourceQuota{quota("q", limits, corev1.ResourceQuotaScopeNotTerminating)}, noPod: true,
		},
		"no pod to ask, a selector": {
			quotas: []corev1.ResourceQuota{selector(quota("q", limits), corev1.ScopeSelectorOpDoesNotExist)}, noPod: true,
		},
		"status is empty, spec is not": {
			quotas: []corev1.ResourceQuota{
				{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"limits.memory": resource.MustParse("1Gi")}}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod()
			if tc.edit != nil {
				tc.edit(p)
			}
			if tc.noPod {
				p = nil
			}
			if got := FactsOf(web, nil, p, Objects{Quotas: tc.quotas}).Quota; got != tc.want {
				t.Errorf("quota is %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestPodLeaves: what the size of the whole pod leaves a container app of 128Mi (limit 256Mi).
func TestPodLeaves(t *testing.T) {
	app, other := container("app", "128Mi", "256Mi"), container("log", "32Mi", "")
	for name, tc := range map[string]struct {
		pod            *corev1.Pod
		whole          *corev1.ResourceRequirements
		limit, request memory.Bytes
	}{
		"nothing of its own": {pod: pod(app)},
		"a limit":            {pod: pod(app), whole: new(container("", "", "512Mi").Resources), limit: 512 * memory.MiB},
		"room beside others": {
			pod: pod(app, other), whole: new(container("", "300Mi", "512Mi").Resources), limit: 512 * memory.MiB,
			request: 268 * memory.MiB,
		},
		"no room": {
			pod: pod(app, other), whole: new(container("", "160Mi", "").Resources), request: 128 * memory.MiB,
		},
		"no request at all": {
			pod: pod(container("app", "0", ""), container("log", "64Mi", "")), whole: new(container("", "64Mi", "").Resources),
			request: Exhausted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.pod.Spec.Resources = tc.whole
			if limit, request := PodLeaves(tc.pod, "app"); limit != tc.limit || request != tc.request {
				t.Errorf("leaves limit %d and request %d, want %d and %d", limit, request, tc.limit, tc.request)
			}
		})
	}
}
