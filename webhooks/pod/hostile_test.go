// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/budget"
)

// reviewBudget is what the answer to any review may take, per byte of it.
var reviewBudget = budget.Budget{Bytes: 1 << 20, PerByte: 64, CPU: time.Second}

// TestHostileReviewsAreBounded: any client that reaches the port can send these. The answer is that the pod is allowed.
func TestHostileReviewsAreBounded(t *testing.T) {
	h, _, profile := served(t, "../../internal/inject/testdata/size-on-create.yaml")
	governed := `{"metadata":{"annotations":{"` + v1alpha1.ProfileAnnotation + `":"` + profile.Name + `"%s}},"spec":{%s}}`
	many := func(item string, size int) string {
		return "[" + strings.Repeat(item+",", size/(len(item)+1)) + item + "]"
	}
	const size = 1 << 20
	for name, c := range map[string]struct{ annotations, spec, why string }{
		"limit": {
			spec: `"containers":[{"name":"app","resources":{"limits":{"memory":"1e-999999999"}}}]`,
			why:  "spec.containers[0].resources.limits.memory",
		},
		"limit as a number": {
			spec: `"containers":[{"name":"app","resources":{"limits":{"memory":1E400}}}]`, why: "exponent 400",
		},
		"limit with claims": {
			spec: `"containers":[{"name":"app","resources":{"limits":{"cpu":"1e-999999999"},"claims":[]}}]`, why: "limits.cpu",
		},
		"request": {
			spec: `"initContainers":[{"name":"app","resources":{"requests":{"x/y":"1e999999999"}}}],"containers":[]`,
			why:  "spec.initContainers[0].resources.requests.x/y",
		},
		"long limit": {
			spec: `"containers":[{"name":"app","resources":{"limits":{"memory":"` + strings.Repeat("9", size) + `"}}}]`,
			why:  "characters",
		},
		"size of a volume": {
			spec: `"volumes":[{"name":"a","emptyDir":{"medium":"Memory","sizeLimit":"1e-999999999"}}],"containers":[]`,
			why:  "spec.volumes[0].emptyDir.sizeLimit",
		},
		"limit of the pod": {
			spec: `"resources":{"limits":{"memory":"1e-999999999"}},"containers":[]`, why: "spec.resources.limits.memory",
		},
		"divisor": {
			spec: `"containers":[{"name":"app","env":[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"1e-999999999"}}}]}]`,
			why:  "env[0].valueFrom.resourceFieldRef.divisor",
		},
		"overhead, twice": {
			spec: `"overhead":{"memory":"1e-999999999"},"containers":[],"containers":[]`, why: "spec.overhead.memory",
		},
		"escaped": {
			spec: `"containers":[{"name":"app","resources":{"l\u0069mits":{"memory":"1e-999999999"}}}]`, why: "limits.memory",
		},
		"containers": {spec: `"containers":` + many("{}", size), why: "nearly empty"},
		"ephemeral": {
			spec: `"containers":[],"containers":[],"ephemeralContainers":` + many("{}", size), why: "nearly empty",
		},
		"variables": {spec: `"containers":[{"name":"app","env":` + many("{}", size) + `}]`, why: "nearly empty"},
		"volumes": {
			spec: `"containers":[],"volumes":` + many(`{"emptyDir":{"medium":"Memory"}}`, size), why: "nearly empty",
		},
		"arguments": {spec: `"containers":[{"name":"app","args":` + many(`""`, size) + `}]`},
		"many variables": {
			spec: `"containers":[{"name":"app","command":["node"],"resources":{"limits":{"memory":"1Gi"}},"env":` +
				many(`{"name":"A"}`, size) + `}]`,
		},
		"record": {
			annotations: `,"` + v1alpha1.InjectedAnnotation +
				`":"{\"v\":1,\"containers\":{\"app\":{\"limit\":\"1e-999999999\"}}}"`,
			spec: `"containers":[{"name":"app"}]`,
		},
		"many containers": {
			spec: `"containers":` + many(
				`{"name":"some-container","image":"registry.example/some/image:1.2.3","imagePullPolicy":"IfNotPresent","terminationMessagePath":"/dev/termination-log"}`,
				size,
			),
			why: "containers",
		},
	} {
		body := reviewOf(fmt.Appendf(nil, governed, c.annotations, c.spec))
		t.Run(name, func(t *testing.T) {
			before := counted(t, h, outOfBounds, "bounds")
			var answer *admissionv1.AdmissionResponse
			budget.Check(t, reviewBudget, len(body), func() { answer = asked(t, h, body) })
			if !answer.Allowed || c.why != "" && (len(answer.Patch) > 0 || len(answer.Warnings) != 1 ||
				!strings.Contains(answer.Warnings[0], c.why) || len(answer.Warnings[0]) > 400) {
				t.Errorf(
					"allowed %t, patch of %d bytes, warnings %.400q, want one with %q", answer.Allowed, len(answer.Patch),
					answer.Warnings, c.why,
				)
			}
			if refused := counted(t, h, outOfBounds, "bounds") - before; (refused == 1) != (c.why != "") {
				t.Errorf("counted %v times", refused)
			}
		})
	}
}

// TestOnlyThePodIsRead: what else is in a review costs nothing, and changes no answer.
func TestOnlyThePodIsRead(t *testing.T) {
	h, pod, _ := served(t, "../../internal/inject/testdata/size-on-create.yaml")
	usual := string(reviewOf(pod))
	want := asked(t, h, []byte(usual))
	for name, large := range map[string]string{
		"extra": strings.Replace(
			usual, `"oldObject":null`, `"userInfo":{"extra":{`+strings.Repeat(`"":[],`, 400_000)+`"":[]}}`, 1,
		),
		"managed fields": strings.Replace(
			usual, `"metadata":{`, `"metadata":{"managedFields":[`+strings.Repeat(`{},`, 400_000)+`{}],`, 1,
		),
		"status": strings.Replace(
			usual, `"spec":{`, `"status":{"containerStatuses":[`+strings.Repeat(`{},`, 400_000)+`{}]},"spec":{`, 1,
		),
	} {
		var got *admissionv1.AdmissionResponse
		budget.Check(t, reviewBudget, len(large), func() { got = asked(t, h, []byte(large)) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -usual +large\n%s", name, diff)
		}
	}
}

// TestRequestsBeyondTheBounds: metadata that would become too large is not decoded, and a review of which only the
// beginning is known is answered as well, if its UID is in it.
func TestRequestsBeyondTheBounds(t *testing.T) {
	h, pod, _ := served(t, "../../internal/inject/testdata/size-on-create.yaml")
	usual := string(reviewOf(pod))
	large := strings.Replace(
		usual, `"metadata":{`, `"metadata":{"ownerReferences":[`+strings.Repeat(`{},`, 400_000)+`{}],`, 1,
	)
	before := counted(t, h, outOfBounds, "bounds")
	if got := asked(t, h, []byte(large)); !got.Allowed || got.UID != "u-1" || len(got.Patch) > 0 ||
		len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "metadata.ownerReferences") {
		t.Errorf("too many owners: allowed %t, UID %q, warnings %.400q", got.Allowed, got.UID, got.Warnings)
	}
	if n := counted(t, h, outOfBounds, "bounds") - before; n != 1 {
		t.Errorf("counted %v times", n)
	}
	for beginning, want := range map[string]int{
		usual[:len(usual)/2]: http.StatusOK, usual[:20]: http.StatusServiceUnavailable, "": http.StatusServiceUnavailable,
		`{"request":{"uid":7`: http.StatusServiceUnavailable, `{"request":["uid","u"]`: http.StatusServiceUnavailable,
	} {
		recorder := httptest.NewRecorder()
		if h.Refuse(recorder, []byte(beginning), "too large"); recorder.Code != want {
			t.Errorf("status %d for %.100q, want %d", recorder.Code, beginning, want)
		}
		if want == http.StatusOK && !strings.Contains(recorder.Body.String(), `"uid":"u-1","allowed":true`) {
			t.Errorf("%s for %.100q", recorder.Body, beginning)
		}
	}
}
