// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServeHTTP answers a review. Clients may send anything; package server limits the size of requests.
func (h *Injector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), maxInitialBuffer)) + bytes.MinRead)
	_, err := body.ReadFrom(r.Body)
	var req review
	if err == nil {
		req, err = readReview(body.Bytes())
	}
	if err != nil {
		h.Metrics.outOfBounds.Inc()
		h.Refuse(w, body.Bytes(), err.Error())
		return
	}
	answer := h.Respond(r.Context(), &req)
	answer.UID = req.UID
	write(w, answer)
}

// maxInitialBuffer limits the initial capacity for a review, most of which have 4 to 20 KiB.
const maxInitialBuffer = 64 << 10

// Refuse admits a pod unchanged if its request could not be read completely, and warns the client that creates the pod.
// Without the request's UID the API server accepts no response; it then applies the webhook's failurePolicy, which also
// admits the pod unchanged.
func (h *Injector) Refuse(w http.ResponseWriter, beginning []byte, why string) {
	req, _ := readReview(beginning)
	if req.UID == "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	answer := allowed("the pod was admitted unchanged: " + why)
	answer.UID = req.UID
	write(w, answer)
}

// allowed returns the response that admits a pod unchanged.
func allowed(warnings ...string) *admissionv1.AdmissionResponse {
	a := &admissionv1.AdmissionResponse{Allowed: true}
	for _, w := range warnings {
		a.Warnings = append(a.Warnings, "memfit: "+w)
	}
	return a
}

func write(w http.ResponseWriter, answer *admissionv1.AdmissionResponse) {
	text, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: admissionv1.SchemeGroupVersion.String()},
		Response: answer,
	})
	if err != nil {
		http.Error(w, fmt.Sprintf("encoding the response: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}
