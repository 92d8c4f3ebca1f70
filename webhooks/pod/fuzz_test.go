// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	kjson "sigs.k8s.io/json"

	"github.com/memfit/memfit/internal/boundedjson"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/test/budget"
)

// FuzzReview: any request is answered within the budget, and the pod of any review that an API server could have sent
// is allowed.
func FuzzReview(f *testing.F) {
	h, pod, _ := served(f, "../../internal/inject/testdata/size-on-create.yaml")
	usual := reviewOf(pod)
	checkReview(f, h, usual) // what is made once per process is no part of the budget
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
	changed(`"dryRun":false`, `"dryRun":null`)
	changed(`"dryRun":false`, `"request":{"uid":null}`)
	changed(`"uid":"u-1"`, `"uid":7,"uid":"u-1"`)
	changed(`"metadata":{`, `"metadata":null,"metadata":{`)
	changed(`"spec":{`, `"spec":7,"spec":{`)
	changed(`"containers":[`, `"containers":{},"containers":[`)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) { checkReview(t, h, body) })
}

func checkReview(t testing.TB, h *testHandler, body []byte) {
	t.Helper()
	var answer *admissionv1.AdmissionResponse
	budget.Check(t, reviewBudget, len(body), func() { answer = answered(h, body) })
	var asked admissionv1.AdmissionReview
	if boundedjson.Decode(body, "", &asked) != nil || asked.APIVersion != "admission.k8s.io/v1" ||
		asked.Kind != "AdmissionReview" || asked.Request == nil || asked.Request.UID == "" {
		return
	}
	if answer == nil || !answer.Allowed || answer.UID != asked.Request.UID {
		t.Errorf("%s: answered %+v", body, answer)
		return
	}
	if len(answer.Patch) > 0 && kjson.UnmarshalCaseSensitivePreserveInts(answer.Patch, new(inject.Patch)) != nil {
		t.Errorf("%s: patched with %s", body, answer.Patch)
	}
}

// answered is what a handler answers; nil when that is no AdmissionReview.
func answered(h http.Handler, body []byte) *admissionv1.AdmissionResponse {
	request := httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	var answer admissionv1.AdmissionReview
	if json.Unmarshal(recorder.Body.Bytes(), &answer) != nil {
		return nil
	}
	return answer.Response
}
