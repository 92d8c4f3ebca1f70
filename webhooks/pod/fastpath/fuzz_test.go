// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/memfit/memfit/internal/boundedjson"
	"github.com/memfit/memfit/test/budget"
	"github.com/memfit/memfit/webhooks/pod"
	"github.com/memfit/memfit/webhooks/server"
)

// FuzzBothWays: to any request, the quick way and the framework's give one answer, within the budget, also after other
// requests whose outcomes are remembered. Where the framework cannot read a request, the quick way admits the pod, or
// refuses as well, and changes it only where nobody can read it: the API server, which reads pods in the framework's
// way, sends no such request. Where a field of the request comes twice, it changes the pod only as the framework does.
// Most seeds must be ones that are compared.
func FuzzBothWays(f *testing.F) {
	h, pod, _ := golden(f, "../../../internal/inject/testdata/size-on-create.yaml")
	usual := reviewOf(pod)
	checkBothWays(f, h, usual) // what is made once per process is no part of the budget
	f.Add(usual)
	changed := func(old, new string) {
		if !bytes.Contains(usual, []byte(old)) {
			f.Fatalf("no %s in %s", old, usual)
		}
		f.Add(bytes.Replace(usual, []byte(old), []byte(new), 1))
	}
	for _, size := range []string{
		"1E400", "1e-999999999", `"1e-999999999"`, "268435456", "2.5e8", `"256Mi "`, "null", "{}",
	} {
		changed(`"memory":"256Mi"`, `"memory":`+size)
	}
	for _, kind := range []string{
		`"kind":"AdmissionReviews"`, `"kind":7`, `"kind":null`, `"Kind":"AdmissionReview"`, `"k\u0069nd":"AdmissionReview"`,
		`"a":1`,
	} {
		changed(`"kind":"AdmissionReview"`, kind)
	}
	for _, version := range []string{"v1beta1", "v2", "v1\",\"apiVersion\":\"v1beta1"} {
		changed("admission.k8s.io/v1", "admission.k8s.io/"+version)
	}
	changed(`"namespace":"shop",`, ``)
	changed(
		`"namespace":"shop",`,
		`"kind":{"group":"apps","version":"v1","kind":"Deployment"},"subResource":"resize","namespace":"shop",`,
	)
	changed(`"oldObject":null`, `"namespace":"other"`)
	f.Add(
		bytes.Replace(
			bytes.Replace(usual, []byte(`"namespace":"shop",`), nil, 1), []byte(`"oldObject":null`),
			[]byte(`"namespace":"shop"`), 1,
		),
	)
	changed(`"metadata":{`, `"kind":"Deployment","apiVersion":7,"metadata":{`)
	changed(`"operation":"CREATE"`, `"operation":"DELETE"`)
	changed(`"dryRun":false`, `"dryRun":"false"`)
	f.Add([]byte{})
	seeds, compared := 0, 0
	f.Fuzz(func(t *testing.T, body []byte) {
		seeds++
		if checkBothWays(t, h, body) {
			compared++
		}
	})
	// what a fuzzer makes up is mostly no request
	if fuzzing := flag.Lookup("test.fuzz").Value.String() != ""; !fuzzing && compared*3 < seeds*2 {
		f.Errorf("%d of %d requests could be compared: the others were read by one way only", compared, seeds)
	}
}

// checkBothWays is false where the framework cannot read the request, so that there is nothing to compare.
func checkBothWays(t testing.TB, h *testHandler, body []byte) bool {
	t.Helper()
	var quick, usual *admissionv1.AdmissionResponse
	budget.Check(t, reviewBudget, len(body), func() { quick = answered(h, body) })
	budget.Check(t, reviewBudget, len(body), func() { usual = answered(h.usual, body) })
	switch {
	case quick == nil: // beyond the bounds, and without a UID that could be answered
		if usual != nil && usual.Allowed && usual.UID != "" && !failedOpen(usual) {
			t.Errorf("the quick way has no answer to %s, and the usual one %+v", body, usual)
		}
		return usual == nil
	case usual == nil || !usual.Allowed || failedOpen(usual):
		if !quick.Allowed && (usual == nil || usual.Allowed) {
			t.Errorf("the quick way refuses %s", body)
		}
		if len(quick.Patch) > 0 && (usual == nil || len(usual.Patch) == 0) && readable(body) {
			t.Errorf("the quick way changes a pod that the usual one does not: %s", body)
		}
		return cmp.Equal(usual, quick)
	case !cmp.Equal(usual, quick):
		// Read stops where it knows that nobody governs the pod: it does not see what comes again after that
		if len(quick.Patch) == 0 && hasDuplicate(body) {
			return false
		}
		t.Errorf("%s: -usual +quick\n%s", body, cmp.Diff(usual, quick))
	}
	return true
}

// hasDuplicate: a field of the request or its pod comes twice, as no API server writes it.
func hasDuplicate(body []byte) bool {
	var request map[string]any // of any type, so that the pod within is looked at as well
	strict, err := kjson.UnmarshalStrict(body, &request, kjson.DisallowDuplicateFields)
	return err == nil && len(strict) > 0
}

// readable: a request and its pod are beyond a bound, which both ways must keep, or can be read as the API server
// reads.
func readable(body []byte) bool {
	var asked admissionv1.AdmissionReview
	if boundedjson.Check(body, &asked) != nil {
		return true
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(body, &asked) != nil || asked.Request == nil {
		return false
	}
	var pod corev1.Pod
	return boundedjson.Check(asked.Request.Object.Raw, &pod) != nil ||
		kjson.UnmarshalCaseSensitivePreserveInts(asked.Request.Object.Raw, &pod) == nil
}

// failedOpen: the pod was admitted unchanged because something of it, which the quick way need not have read, could not
// be read.
func failedOpen(r *admissionv1.AdmissionResponse) bool {
	return len(r.Warnings) == 1 && strings.Contains(r.Warnings[0], "admitted unchanged")
}

// answered is what a handler answers; nil when that is no AdmissionReview.
func answered(h http.Handler, body []byte) *admissionv1.AdmissionResponse {
	request := httptest.NewRequest(http.MethodPost, pod.Path, nil)
	request.Body = server.NewBody(body)
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	var answer admissionv1.AdmissionReview
	if json.Unmarshal(recorder.Body.Bytes(), &answer) != nil || answer.Response == nil {
		return nil
	}
	if answer.Response.Allowed {
		answer.Response.Result = nil // ours has none; to the API server that is the same
	}
	return answer.Response
}
