// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/budget"
)

// profileBudget is what the answer to any profile may take, per byte of it.
var profileBudget = budget.Budget{Bytes: 1 << 20, PerByte: 64, CPU: time.Second}

// TestHostileProfilesAreBounded: the API server checks a profile before it asks, but whoever reaches the port need not.
func TestHostileProfilesAreBounded(t *testing.T) {
	hook := validator{indexed(nil), profile.KindNamespaced}
	ask := func(spec string) (answer admission.Response) {
		raw := `{"apiVersion":"memfit.dev/v1alpha1","kind":"MemoryProfile","metadata":{"name":"p","namespace":"n"},"spec":` +
			spec + `}`
		req := admission.Request{
			AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(raw)},
			},
		}
		budget.Check(t, profileBudget, len(raw), func() { answer = hook.Handle(t.Context(), req) })
		return answer
	}
	for spec, why := range map[string]string{
		`{"tuning":{"heapLimit":"1e-999999999"}}`:                                       "spec.tuning.heapLimit",
		`{"tuning":{"reserve":"1e-999999999"}}`:                                         "spec.tuning.reserve",
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
