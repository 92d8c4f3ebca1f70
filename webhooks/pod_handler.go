// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/memfit/memfit/internal/review"
)

// maxReview is above any pod an API server can store (etcd takes 1.5 MB) with what comes around it.
const maxReview = 7 << 20

// podHandler serves [PodInjector] without the framework's decoding, which costs more than all the rest together. Whatever is
// unusual about a request goes to the framework instead, which also knows best how to complain.
type podHandler struct {
	injector *PodInjector
	usual    http.Handler
}

func (h *podHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength <= 0 || r.ContentLength > maxReview || r.Header.Get("Content-Type") != "application/json" {
		h.usual.ServeHTTP(w, r)
		return
	}
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		http.Error(w, "the request ends early", http.StatusBadRequest)
		return
	}
	request, ok := review.Read(body)
	if !ok {
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.usual.ServeHTTP(w, r)
		return
	}
	ctx := logf.IntoContext(r.Context(), logf.Log.WithName("admission").WithValues("namespace", request.Namespace, "requestID", request.UID))
	response := h.injector.Handle(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: request.UID, Namespace: request.Namespace, DryRun: &request.DryRun, Object: runtime.RawExtension{Raw: request.Object},
	}})
	patch := ""
	if len(response.Patches) > 0 {
		text, err := json.Marshal(response.Patches)
		if err != nil {
			response = h.injector.failOpen(ctx, "encode", err)
		} else {
			patch = base64.StdEncoding.EncodeToString(text)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(review.AppendAllowed(nil, request.UID, patch, response.Warnings))
}
