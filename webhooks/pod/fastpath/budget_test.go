// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"bytes"
	"fmt"
	"net/http"
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

// TestHostileReviewsAreBounded: anybody who reaches the port can send these. Both ways of reading answer that the pod
// is allowed.
func TestHostileReviewsAreBounded(t *testing.T) {
	h, _, profile := golden(t, "../../../internal/inject/testdata/size-on-create.yaml")
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
		for way, handler := range map[string]http.Handler{"quick": h, "usual": h.usual} {
			t.Run(name+", "+way, func(t *testing.T) {
				before := counted(t, h, outOfBounds, "bounds")
				var answer *admissionv1.AdmissionResponse
				budget.Check(t, reviewBudget, len(body), func() { answer, _ = asked(t, handler, body) })
				if !answer.Allowed || c.why != "" &&
					(len(answer.Patch) > 0 || len(answer.Warnings) != 1 || !strings.Contains(answer.Warnings[0],
						c.why) || len(answer.Warnings[0]) > 400) {
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
}

// TestAnOutcomeIsNotPoisoned: a request of somebody who reaches the port must not decide what the next pod gets. Of a
// key that comes twice, one reader takes the first and another the last.
func TestAnOutcomeIsNotPoisoned(t *testing.T) {
	for name, doubled := range map[string][2]string{
		"volumes": {
			`"spec":{`, `"spec":{"volumes":[{"name":"a","emptyDir":{"medium":"Memory","sizeLimit":"100Mi"}}],"volumes":[],`,
		},
		"containers": {`"spec":{`, `"spec":{"containers":[],`},
		"a limit":    {`"limits":{`, `"limits":{"memory":"64Mi",`},
	} {
		h, pod, _ := golden(t, "../../../internal/inject/testdata/nodejs/node-512.yaml")
		want, _ := asked(t, h.usual, reviewOf(pod))
		evil := bytes.ReplaceAll(pod, []byte(doubled[0]), []byte(doubled[1]))
		if bytes.Equal(evil, pod) {
			t.Fatalf("%s: nothing is doubled in %s", name, pod)
		}
		usual, _ := asked(t, h.usual, reviewOf(evil))
		if got, _ := asked(t, h, reviewOf(evil)); !cmp.Equal(usual, got) {
			t.Errorf("%s: the sender's own answer, -usual +got\n%s", name, cmp.Diff(usual, got))
		}
		if n := h.known.cache().Len(); n != 0 {
			t.Errorf("%s: %d outcomes of a doubled key are remembered", name, n)
		}
		if got, _ := asked(t, h, reviewOf(pod)); !cmp.Equal(want, got) || len(got.Patch) == 0 {
			t.Errorf("%s: the next pod, -want +got\n%s", name, cmp.Diff(want, got))
		}
	}
}
