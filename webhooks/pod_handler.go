// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/json"

	"github.com/memfit/memfit/internal/review"
)

// maxReview is above any pod an API server can store (etcd takes 1.5 MB) with what comes around it.
const maxReview = 7 << 20

// maxKept is the largest buffer kept for another request. Usual pods have 4 to 20 KB; a rare large one must not stay for ever.
const maxKept = 64 << 10

// podHandler serves [PodInjector] without the framework's decoding and encoding, which cost more than all the rest together. Whatever
// is unusual about a request goes to the framework instead, which also knows best how to complain.
type podHandler struct {
	injector *PodInjector
	usual    http.Handler
	buffers  sync.Pool // of *buffers
}

// buffers are the texts of one request. They are used again because of what garbage costs here: every few hundred megabytes of it
// the collector walks the whole cache of a large cluster.
type buffers struct{ body, answer []byte }

func (h *podHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength <= 0 || r.ContentLength > maxReview || r.Header.Get("Content-Type") != "application/json" {
		h.usual.ServeHTTP(w, r)
		return
	}
	b, _ := h.buffers.Get().(*buffers)
	if b == nil {
		b = &buffers{}
	}
	defer func() {
		if max(cap(b.body), cap(b.answer)) <= maxKept {
			h.buffers.Put(b)
		}
	}()
	if int64(cap(b.body)) < r.ContentLength {
		b.body = make([]byte, max(r.ContentLength, 8<<10))
	}
	b.body = b.body[:r.ContentLength]
	if _, err := io.ReadFull(r.Body, b.body); err != nil {
		http.Error(w, "the request ends early", http.StatusBadRequest)
		return
	}
	request := encoded{body: b.body}
	if !request.read() {
		r.Body = io.NopCloser(bytes.NewReader(b.body))
		h.usual.ServeHTTP(w, r)
		return
	}
	a := h.injector.answer(r.Context(), &request)
	b.answer = review.AppendAllowed(b.answer[:0], request.review.UID, a.patch, a.warnings)
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(b.answer))) // one write instead of chunks
	_, _ = w.Write(b.answer)
}

// encoded is a pod in the bytes of a request.
type encoded struct {
	body   []byte
	review review.Review
}

func (e *encoded) read() (ok bool) {
	e.review, ok = review.Read(e.body)
	e.review.Meta.Namespace = e.review.Namespace
	return ok
}

func (e *encoded) metadata() (*metav1.ObjectMeta, error) { return &e.review.Meta, nil }

func (e *encoded) rest(into *corev1.Pod) (outline review.Outline, dryRun bool, err error) {
	outline, dryRun, ok := e.review.Rest(into)
	if ok {
		return outline, dryRun, nil
	}
	var whole admissionv1.AdmissionReview
	if err := json.UnmarshalCaseSensitivePreserveInts(e.body, &whole); err != nil {
		return outline, false, fmt.Errorf("decoding the request: %w", err)
	}
	if whole.Request == nil {
		return outline, false, fmt.Errorf("decoding the request: there is none")
	}
	return (*decoded)(&admission.Request{AdmissionRequest: *whole.Request}).rest(into)
}

func (e *encoded) logger(ctx context.Context) logr.Logger {
	return logf.FromContext(ctx).WithName("admission").WithValues("namespace", e.review.Namespace, "requestID", e.review.UID)
}

// decoded is a pod in a request that the framework decoded.
type decoded admission.Request

func (d *decoded) metadata() (*metav1.ObjectMeta, error) {
	var meta metav1.PartialObjectMetadata
	if err := json.UnmarshalCaseSensitivePreserveInts(d.Object.Raw, &meta); err != nil {
		return nil, fmt.Errorf("decoding the pod's metadata: %w", err)
	}
	meta.Namespace = d.Namespace
	return &meta.ObjectMeta, nil
}

func (d *decoded) rest(into *corev1.Pod) (outline review.Outline, dryRun bool, err error) {
	*into = corev1.Pod{}
	if err := json.UnmarshalCaseSensitivePreserveInts(d.Object.Raw, into); err != nil {
		return outline, false, fmt.Errorf("decoding the pod: %w", err)
	}
	into.Namespace = d.Namespace
	outline, err = outlineOf(d.Object.Raw)
	return outline, d.DryRun != nil && *d.DryRun, err
}

func (d *decoded) logger(ctx context.Context) logr.Logger { return logf.FromContext(ctx) }
