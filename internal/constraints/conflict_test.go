// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/test/budget"
)

// TestVerticalPodAutoscalers: which of them control the memory of container app of Deployment shop/web, and how that
// is reported.
func TestVerticalPodAutoscalers(t *testing.T) {
	const targetsWeb = "  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n"
	const controls = "VerticalPodAutoscaler shop/v (updateMode Recreate, controls memory)"
	for name, tc := range map[string]struct{ spec, want string }{
		"it recreates pods": {targetsWeb + "  updatePolicy: {updateMode: Recreate}", controls},
		"it resizes in place": {
			targetsWeb + "  updatePolicy: {updateMode: InPlaceOrRecreate}",
			"VerticalPodAutoscaler shop/v (updateMode InPlaceOrRecreate, controls memory)",
		},
		"it sizes new pods only": {
			targetsWeb + "  updatePolicy: {updateMode: Initial}",
			"VerticalPodAutoscaler shop/v (updateMode Initial, controls memory)",
		},
		"its mode is the default": {
			targetsWeb, "VerticalPodAutoscaler shop/v (updateMode not set, so it applies, controls memory)",
		},
		"it only recommends": {targetsWeb + "  updatePolicy: {updateMode: 'Off'}", ""},
		"its target has no group": {
			"  targetRef: {kind: Deployment, name: web}\n  updatePolicy: {updateMode: Recreate}", controls,
		},
		"its target is older": {
			"  targetRef: {apiVersion: apps/v1beta1, kind: Deployment, name: web}\n  updatePolicy: {updateMode: Recreate}",
			controls,
		},
		"its target is another":   {"  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web-2}", ""},
		"its target is of no kin": {"  targetRef: {apiVersion: example.org/v1, kind: Deployment, name: web}", ""},
		"its target is a set":     {"  targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}", ""},
		"it leaves memory out": {
			targetsWeb + "  resourcePolicy: {containerPolicies: [{containerName: '*', controlledResources: [cpu]}]}", "",
		},
		"it controls nothing": {
			targetsWeb + "  resourcePolicy: {containerPolicies: [{containerName: app, controlledResources: []}]}", "",
		},
		"it leaves app out": {
			targetsWeb + "  resourcePolicy: {containerPolicies: [{containerName: app, mode: 'Off'}]}", "",
		},
		"it leaves a sidecar out": {
			targetsWeb + "  updatePolicy: {updateMode: Recreate}\n  resourcePolicy: {containerPolicies: [{containerName: " +
				"proxy, mode: 'Off'}]}",
			controls,
		},
		"app stands before the *": {
			targetsWeb + "  updatePolicy: {updateMode: Recreate}\n  resourcePolicy: {containerPolicies: [{containerName: '*', " +
				"mode: 'Off'}, {containerName: app, controlledResources: [memory]}]}",
			controls,
		},
		"the * counts for app": {
			targetsWeb + "  resourcePolicy: {containerPolicies: [{containerName: proxy}, {containerName: '*', mode: 'Off'}]}",
			"",
		},
		"values do not matter": {
			targetsWeb + "  updatePolicy: {updateMode: Recreate}\n  resourcePolicy: {containerPolicies: [{containerName: app, " +
				"controlledValues: RequestsOnly}]}",
			controls,
		},
		"a policy is no policy": {
			targetsWeb + "  updatePolicy: {updateMode: Recreate}\n  resourcePolicy: {containerPolicies: [7, null, " +
				"{containerName: 3}]}",
			controls,
		},
		"resources are no list": {
			targetsWeb + "  updatePolicy: {updateMode: Recreate}\n  resourcePolicy: {containerPolicies: [{containerName: app, " +
				"controlledResources: cpu}]}",
			controls,
		},
		"the mode is no text": {
			targetsWeb + "  updatePolicy: {updateMode: 4}",
			"VerticalPodAutoscaler shop/v (updateMode not set, so it applies, controls memory)",
		},
		"it has no target":          {"  updatePolicy: {updateMode: Recreate}", ""},
		"its target is a text":      {"  targetRef: web", ""},
		"its resource policy is []": {targetsWeb + "  updatePolicy: {updateMode: Recreate}\n  resourcePolicy: []", controls},
	} {
		t.Run(name, func(t *testing.T) {
			var content map[string]any
			if err := yaml.Unmarshal([]byte("metadata: {namespace: shop, name: v}\nspec:\n"+tc.spec), &content); err != nil {
				t.Fatal(err)
			}
			var vpas []VPA
			if v, ok := ReadVPA(content); ok {
				vpas = append(vpas, v)
			}
			got, remedy := Conflict(web, []string{"app"}, vpas, nil)
			if got != tc.want {
				t.Errorf("conflict is %q, want %q", got, tc.want)
			}
			if (remedy == "") != (tc.want == "") || tc.want != "" && !strings.Contains(remedy, "controlledResources") {
				t.Errorf("remedy is %q", remedy)
			}
		})
	}
}

// TestHorizontalPodAutoscalers: which of them scale on the memory of container app.
func TestHorizontalPodAutoscalers(t *testing.T) {
	pods := func(resource corev1.ResourceName) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{
			Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: resource},
		}
	}
	one := func(container string, resource corev1.ResourceName) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{
			Type:              autoscalingv2.ContainerResourceMetricSourceType,
			ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: resource, Container: container},
		}
	}
	external := autoscalingv2.MetricSpec{
		Type:     autoscalingv2.ExternalMetricSourceType,
		External: &autoscalingv2.ExternalMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "memory"}},
	}
	keda := func(h *autoscalingv2.HorizontalPodAutoscaler) {
		h.Name = "keda-hpa-web"
		h.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Name: "web", Controller: new(true)},
		}
	}
	const scales = "HorizontalPodAutoscaler shop/h (scales on memory)"
	for name, tc := range map[string]struct {
		metrics []autoscalingv2.MetricSpec
		edit    func(*autoscalingv2.HorizontalPodAutoscaler)
		want    string
	}{
		"on memory of pods":         {metrics: []autoscalingv2.MetricSpec{pods("cpu"), pods("memory")}, want: scales},
		"on memory of app":          {metrics: []autoscalingv2.MetricSpec{one("app", "memory")}, want: scales},
		"on memory of another":      {metrics: []autoscalingv2.MetricSpec{one("proxy", "memory")}},
		"on CPU":                    {metrics: []autoscalingv2.MetricSpec{pods("cpu"), one("app", "cpu")}},
		"on nothing, which is CPU":  {},
		"on something named memory": {metrics: []autoscalingv2.MetricSpec{external}},
		"on a type without its source": {
			metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType}},
		},
		"KEDA, on memory": {
			metrics: []autoscalingv2.MetricSpec{pods("memory")}, edit: keda,
			want: "ScaledObject shop/web (KEDA, scales on memory through HorizontalPodAutoscaler keda-hpa-web)",
		},
		"KEDA, on a queue": {metrics: []autoscalingv2.MetricSpec{external}, edit: keda},
		"another workload": {
			metrics: []autoscalingv2.MetricSpec{pods("memory")},
			edit:    func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.ScaleTargetRef.Name = "api" },
		},
		"another namespace": {
			metrics: []autoscalingv2.MetricSpec{pods("memory")},
			edit:    func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Namespace = "other" },
		},
		"a version that is none at all": {
			metrics: []autoscalingv2.MetricSpec{pods("memory")},
			edit:    func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.ScaleTargetRef.APIVersion = "a/b/c" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "h"}}
			h.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{
				APIVersion: "apps/v1", Kind: "Deployment", Name: "web",
			}
			h.Spec.Metrics = tc.metrics
			if tc.edit != nil {
				tc.edit(h)
			}
			if got, _ := Conflict(web, []string{"app"}, nil, []HPA{ReadHPA(h)}); got != tc.want {
				t.Errorf("conflict is %q, want %q", got, tc.want)
			}
			if got, _ := Conflict(web, nil, nil, []HPA{ReadHPA(h)}); got != "" {
				t.Errorf("memfit sizes no container, and yet: %q", got)
			}
		})
	}
}

// TestConflictNamesAll: writers come first, all are named in an order that does not depend on the cache's, and each
// remedy is given once.
func TestConflictNamesAll(t *testing.T) {
	h := HPA{Name: "h", Target: web, pods: true}
	a, b := VPA{Name: "a", Target: web, UpdateMode: "Auto"}, VPA{Name: "b", Target: web, UpdateMode: "Auto"}
	got, remedy := Conflict(web, []string{"app"}, []VPA{b, a}, []HPA{h})
	const want = "VerticalPodAutoscaler shop/a (updateMode Auto, controls memory) and VerticalPodAutoscaler shop/b " +
		"(updateMode Auto, controls memory) and " +
		"HorizontalPodAutoscaler shop/h (scales on memory)"
	if got != want {
		t.Errorf("conflict is %q, want %q", got, want)
	}
	if want := `set its updateMode to "Off" or remove memory from its controlledResources; remove its memory metric`; remedy != want {
		t.Errorf("remedy is %q, want %q", remedy, want)
	}
}

// FuzzReadVPA: an object of any content is read without an error, and one without a target never counts.
func FuzzReadVPA(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"spec":null}`, `{"spec":{"targetRef":[]}}`,
		`{"metadata":7,"spec":{"targetRef":{"kind":"Deployment","name":"web"}}}`,
		`{"spec":{"targetRef":{"kind":"Deployment","name":"web"},"updatePolicy":{"updateMode":{}},"resourcePolicy":{"containerPolicies":[[],{"containerName":"app","controlledResources":[1,null,"memory"]}]}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var content map[string]any
		if json.Unmarshal(data, &content) != nil {
			t.Skip()
		}
		var v VPA
		var ok bool
		budget.Check(
			t, budget.Budget{Bytes: 64 << 10, PerByte: 64, CPU: time.Second}, len(data),
			func() { v, ok = ReadVPA(content) },
		)
		if ok != (v.Target.Kind != "" && v.Target.Name != "") {
			t.Fatalf("read %+v: %t", v, ok)
		}
		v.Target.Namespace = web.Namespace
		got, _ := Conflict(web, []string{"app"}, []VPA{v}, nil)
		if got != "" && (!ok || v.UpdateMode == "Off") {
			t.Fatalf("%+v counts as %q", v, got)
		}
	})
}
