// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/test/budget"
)

// patchBudget is what a patch may take, per byte of the pod.
var patchBudget = budget.Budget{Bytes: 64 << 10, PerByte: 16, CPU: time.Second}

// TestPatchIsLinear: 25,000 variables, of which nothing at either end stays as it is. A table of both lists would have 625 million cells.
func TestPatchIsLinear(t *testing.T) {
	const many = 25_000
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
	c := &pod.Spec.Containers[0]
	for i := range many {
		c.Env = append(c.Env, corev1.EnvVar{Name: "VARIABLE_" + strconv.Itoa(i), Value: "some text"})
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	outline, err := outlineOf(raw)
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func([]corev1.EnvVar) []corev1.EnvVar{
		"first and last changed": func(env []corev1.EnvVar) []corev1.EnvVar { env[0].Value, env[many-1].Value = "a", "b"; return env },
		"first gone, one added":  func(env []corev1.EnvVar) []corev1.EnvVar { return append(env[1:], corev1.EnvVar{Name: "NEW"}) },
		"all changed": func(env []corev1.EnvVar) []corev1.EnvVar {
			for i := range env {
				env[i].Value = "other"
			}
			return env
		},
		"the same item all over": func(env []corev1.EnvVar) []corev1.EnvVar {
			for i := range env {
				env[i] = corev1.EnvVar{Name: "A"}
			}
			return env
		},
	} {
		after := pod.DeepCopy()
		after.Spec.Containers[0].Env = edit(after.Spec.Containers[0].Env)
		change := difference{pod, after}
		edited := change.Edit("app")
		var patch []byte
		t.Run(name, func(t *testing.T) {
			budget.Check(t, patchBudget, len(raw), func() {
				if patch, err = podPatch(nil, outline, pod, fixedEdit{change, edited}); err != nil {
					t.Fatal(err)
				}
			})
			var operations []struct{ Op string }
			if err := json.Unmarshal(patch, &operations); err != nil {
				t.Fatal(err)
			}
			if most := many; len(operations) > most || (name[:5] == "first" && len(operations) != 2) {
				t.Errorf("%d operations for %s", len(operations), name)
			}
		})
	}
}

// reviewBudget is what the answer to any review may take, per byte of it.
var reviewBudget = budget.Budget{Bytes: 1 << 20, PerByte: 64, CPU: time.Second}

// TestHostileReviewsAreBounded: anybody who reaches the port can send these. Both ways of reading answer that the pod is allowed.
func TestHostileReviewsAreBounded(t *testing.T) {
	h, _, profile := golden(t, "../internal/inject/testdata/size-on-create.yaml")
	governed := `{"metadata":{"annotations":{"` + v1alpha1.ProfileAnnotation + `":"` + profile.Name + `"%s}},"spec":{%s}}`
	many := func(item string, size int) string {
		return "[" + strings.Repeat(item+",", size/(len(item)+1)) + item + "]"
	}
	const size = 1 << 20
	for name, c := range map[string]struct{ annotations, spec, why string }{
		"limit":             {spec: `"containers":[{"name":"app","resources":{"limits":{"memory":"1e-999999999"}}}]`, why: "spec.containers[0].resources.limits.memory"},
		"limit as a number": {spec: `"containers":[{"name":"app","resources":{"limits":{"memory":1E400}}}]`, why: "exponent 400"},
		"limit with claims": {spec: `"containers":[{"name":"app","resources":{"limits":{"cpu":"1e-999999999"},"claims":[]}}]`, why: "limits.cpu"},
		"request":           {spec: `"initContainers":[{"name":"app","resources":{"requests":{"x/y":"1e999999999"}}}],"containers":[]`, why: "spec.initContainers[0].resources.requests.x/y"},
		"long limit":        {spec: `"containers":[{"name":"app","resources":{"limits":{"memory":"` + strings.Repeat("9", size) + `"}}}]`, why: "characters"},
		"size of a volume":  {spec: `"volumes":[{"name":"a","emptyDir":{"medium":"Memory","sizeLimit":"1e-999999999"}}],"containers":[]`, why: "spec.volumes[0].emptyDir.sizeLimit"},
		"limit of the pod":  {spec: `"resources":{"limits":{"memory":"1e-999999999"}},"containers":[]`, why: "spec.resources.limits.memory"},
		"divisor":           {spec: `"containers":[{"name":"app","env":[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"1e-999999999"}}}]}]`, why: "env[0].valueFrom.resourceFieldRef.divisor"},
		"overhead, twice":   {spec: `"overhead":{"memory":"1e-999999999"},"containers":[],"containers":[]`, why: "spec.overhead.memory"},
		"escaped":           {spec: `"containers":[{"name":"app","resources":{"l\u0069mits":{"memory":"1e-999999999"}}}]`, why: "limits.memory"},
		"containers":        {spec: `"containers":` + many("{}", size), why: "nearly empty"},
		"ephemeral":         {spec: `"containers":[],"containers":[],"ephemeralContainers":` + many("{}", size), why: "nearly empty"},
		"variables":         {spec: `"containers":[{"name":"app","env":` + many("{}", size) + `}]`, why: "nearly empty"},
		"volumes":           {spec: `"containers":[],"volumes":` + many(`{"emptyDir":{"medium":"Memory"}}`, size), why: "nearly empty"},
		"arguments":         {spec: `"containers":[{"name":"app","args":` + many(`""`, size) + `}]`},
		"many variables":    {spec: `"containers":[{"name":"app","command":["node"],"resources":{"limits":{"memory":"1Gi"}},"env":` + many(`{"name":"A"}`, size) + `}]`},
		"record":            {annotations: `,"` + v1alpha1.InjectedAnnotation + `":"{\"v\":1,\"containers\":{\"app\":{\"limit\":\"1e-999999999\"}}}"`, spec: `"containers":[{"name":"app"}]`},
		"many containers":   {spec: `"containers":` + many(`{"name":"some-container","image":"registry.example/some/image:1.2.3","imagePullPolicy":"IfNotPresent","terminationMessagePath":"/dev/termination-log"}`, size), why: "containers"},
	} {
		body := reviewOf(fmt.Appendf(nil, governed, c.annotations, c.spec))
		for way, handler := range map[string]http.Handler{"quick": h, "usual": h.usual} {
			t.Run(name+", "+way, func(t *testing.T) {
				before := counted(t, h.injector.Metrics.outOfBounds)
				var answer *admissionv1.AdmissionResponse
				budget.Check(t, reviewBudget, len(body), func() { answer, _ = asked(t, handler, body) })
				if !answer.Allowed || c.why != "" && (len(answer.Patch) > 0 || len(answer.Warnings) != 1 || !strings.Contains(answer.Warnings[0], c.why) || len(answer.Warnings[0]) > 400) {
					t.Errorf("allowed %t, patch of %d bytes, warnings %.400q, want one with %q", answer.Allowed, len(answer.Patch), answer.Warnings, c.why)
				}
				if refused := counted(t, h.injector.Metrics.outOfBounds) - before; (refused == 1) != (c.why != "") {
					t.Errorf("counted %v times", refused)
				}
			})
		}
	}
}

// TestHostileProfilesAreBounded: the API server checks a profile before it asks, but whoever reaches the port need not.
func TestHostileProfilesAreBounded(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hook := checked(admission.WithValidator(scheme, profileValidator{}), func() any { return &v1alpha1.MemoryProfile{} })
	ask := func(spec string) (answer admission.Response) {
		raw := `{"apiVersion":"memfit.dev/v1alpha1","kind":"MemoryProfile","metadata":{"name":"p","namespace":"n"},"spec":` + spec + `}`
		req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(raw)}}}
		budget.Check(t, reviewBudget, len(raw), func() { answer = hook.Handle(t.Context(), req) })
		return answer
	}
	for spec, why := range map[string]string{
		`{"tuning":{"heapLimit":"1e-999999999"}}`:                                       "spec.tuning.heapLimit",
		`{"containers":[{"name":"a","limit":{"min":"1e-999999999"}}]}`:                  "spec.containers[0].limit.min",
		`{"containers":[` + strings.Repeat(`{},`, 1<<18) + `{}]}`:                       "nearly empty",
		`{"sizing":{"limit":{"max":"` + strings.Repeat("9", 1<<20) + `"}},"tuning":{}}`: "characters",
	} {
		if answer := ask(spec); answer.Allowed || !strings.Contains(answer.Result.Message, why) {
			t.Errorf("%.80s: allowed %t, %+v", spec, answer.Allowed, answer.Result)
		}
	}
	if answer := ask(`{"tuning":{"heapLimit":"256Mi"}}`); !answer.Allowed {
		t.Errorf("a good profile is refused: %+v", answer.Result)
	}
}

// TestAnOutcomeIsNotPoisoned: a request of somebody who reaches the port must not decide what the next pod gets. Of a key that comes twice,
// one reader takes the first and another the last.
func TestAnOutcomeIsNotPoisoned(t *testing.T) {
	for name, doubled := range map[string][2]string{
		"volumes":    {`"spec":{`, `"spec":{"volumes":[{"name":"a","emptyDir":{"medium":"Memory","sizeLimit":"100Mi"}}],"volumes":[],`},
		"containers": {`"spec":{`, `"spec":{"containers":[],`},
		"a limit":    {`"limits":{`, `"limits":{"memory":"64Mi",`},
	} {
		h, pod, _ := golden(t, "../internal/inject/testdata/nodejs/node-512.yaml")
		want, _ := asked(t, h.usual, reviewOf(pod))
		evil := bytes.ReplaceAll(pod, []byte(doubled[0]), []byte(doubled[1]))
		if bytes.Equal(evil, pod) {
			t.Fatalf("%s: nothing is doubled in %s", name, pod)
		}
		usual, _ := asked(t, h.usual, reviewOf(evil))
		if got, _ := asked(t, h, reviewOf(evil)); !cmp.Equal(usual, got) {
			t.Errorf("%s: the sender's own answer, -usual +got\n%s", name, cmp.Diff(usual, got))
		}
		if n := h.injector.known.cache().Len(); n != 0 {
			t.Errorf("%s: %d outcomes of a doubled key are remembered", name, n)
		}
		if got, _ := asked(t, h, reviewOf(pod)); !cmp.Equal(want, got) || len(got.Patch) == 0 {
			t.Errorf("%s: the next pod, -want +got\n%s", name, cmp.Diff(want, got))
		}
	}
}

// fixedEdit knows its edit already, so that only the patch is measured.
type fixedEdit struct {
	difference

	edit inject.Edit
}

func (f fixedEdit) Edit(string) inject.Edit { return f.edit }
