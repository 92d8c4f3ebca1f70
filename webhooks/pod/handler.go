// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/memfit/memfit/internal/boundedjson"
)

// Handler serves an [Injector] through controller-runtime's webhook, for clients that may send anything: a request
// that is beyond the bounds of package boundedjson is answered without decoding it. Package server bounds its bytes
// before.
type Handler struct {
	injector *Injector
	webhook  *admission.Webhook
}

// NewHandler returns the handler of an injector.
func NewHandler(injector *Injector) *Handler {
	return &Handler{injector: injector, webhook: &admission.Webhook{Handler: injector}}
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = boundedjson.Check(body, &admissionv1.AdmissionReview{})
	}
	if err != nil {
		h.injector.Metrics.outOfBounds.Inc()
		h.Refuse(w, body, err.Error())
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.webhook.ServeHTTP(w, r)
}

// Refuse admits a pod unchanged of which only the beginning of the request was read, or none of it, and reports why to
// the client that creates it. Without the request's UID the API server accepts no answer; it then applies the webhook's
// failurePolicy, which admits the pod unchanged as well.
func (h *Handler) Refuse(w http.ResponseWriter, beginning []byte, why string) {
	uid, ok := uidIn(beginning)
	if !ok {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	answer, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: admissionv1.SchemeGroupVersion.String()},
		Response: &admissionv1.AdmissionResponse{
			UID: uid, Allowed: true, Warnings: []string{"memfit: the pod was admitted unchanged: " + why},
		},
	})
	if err != nil {
		http.Error(w, fmt.Sprintf("encoding the answer: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

// uidIn returns the UID of a request of which possibly only the beginning is present; false when it is missing.
func uidIn(beginning []byte) (uid types.UID, ok bool) {
	d := jsontext.NewDecoder(
		bytes.NewReader(beginning), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	)
	if !member(d, "request") || !member(d, "uid") {
		return "", false
	}
	token, err := d.ReadToken()
	if err != nil || token.Kind() != jsontext.KindString || token.String() == "" {
		return "", false
	}
	return types.UID(token.String()), true
}

// member enters the object at the cursor and moves to the value of one of its members.
func member(d *jsontext.Decoder, name string) bool {
	if token, err := d.ReadToken(); err != nil || token.Kind() != jsontext.KindBeginObject {
		return false
	}
	for d.PeekKind() == jsontext.KindString {
		key, err := d.ReadToken()
		if err != nil {
			return false
		}
		if key.String() == name {
			return true
		}
		if d.SkipValue() != nil {
			return false
		}
	}
	return false
}
