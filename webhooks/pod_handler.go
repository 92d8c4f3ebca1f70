// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/memfit/memfit/internal/review"
	"github.com/memfit/memfit/webhooks/server"
)

// maxKept is the largest buffer kept for another request. Usual pods have 4 to 20 KB; a rare large one must not stay for ever.
const maxKept = 64 << 10

// podHandler serves [PodInjector] without the framework's decoding and encoding, which cost more than all the rest together. Whatever
// is unusual about a request goes to the framework instead, which also knows best how to complain.
type podHandler struct {
	injector *PodInjector
	usual    http.Handler
	// used are *encoded to use again, because of what garbage costs here: for every few hundred megabytes of it, the collector
	// walks the whole cache of a large cluster.
	used sync.Pool
}

func (h *podHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, ok := r.Body.(*server.Body)
	if !ok || r.Header.Get("Content-Type") != "application/json" {
		h.usual.ServeHTTP(w, r)
		return
	}
	e, _ := h.used.Get().(*encoded)
	if e == nil {
		e = &encoded{}
	}
	defer func() {
		if e.reset() {
			h.used.Put(e)
		}
	}()
	e.body = body.Bytes()
	if !e.read() {
		h.handOver(w, r, e.body)
		return
	}
	a := h.injector.answer(r.Context(), e)
	if a.handOver {
		h.handOver(w, r, e.body)
		return
	}
	if cap(a.patch) > cap(e.patch) {
		e.patch = a.patch
	}
	if a.result == nil {
		e.result = review.AppendResult(e.result[:0], a.patch, a.warnings)
		a.result = e.result
	}
	e.answer = review.AppendAnswer(e.answer[:0], e.review.UID, a.result)
	write(w, e.answer)
}

// handOver lets the framework answer, within the bounds. All of the request is read again: where a part of it is unusual, for example a second
// namespace after the pod, what was read of the rest may not be what counts.
func (h *podHandler) handOver(w http.ResponseWriter, r *http.Request, body []byte) {
	if err := review.Check(body, &admissionv1.AdmissionReview{}); err != nil {
		h.injector.Metrics.outOfBounds.Inc()
		h.Refuse(w, body, err.Error())
		return
	}
	h.usual.ServeHTTP(w, r)
}

// errHandOver is what is unusual about a request and seen late.
var errHandOver = errors.New("the request is not as API servers write it")

func write(w http.ResponseWriter, answer []byte) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(answer))) // one write instead of chunks
	_, _ = w.Write(answer)
}

// Refuse admits a pod unchanged of which only the beginning of the request was read, or none of it, and says why to whoever creates it. Without
// the request's UID the API server takes no answer; it then goes by the webhook's failurePolicy, which says the same.
func (h *podHandler) Refuse(w http.ResponseWriter, beginning []byte, why string) {
	uid, ok := review.UID(beginning)
	if !ok {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	write(w, review.AppendAnswer(nil, uid, review.AppendResult(nil, nil, []string{"memfit: the pod was admitted unchanged: " + why})))
}

// encoded is a pod in the bytes of a request, and room for what is made of it.
type encoded struct {
	body                        []byte // the request's, not ours
	text, patch, result, answer []byte

	review  review.Review
	decoded corev1.Pod
}

// reset forgets the request; false when the buffers have grown too large to keep.
func (e *encoded) reset() bool {
	e.body, e.review, e.decoded = nil, review.Review{}, corev1.Pod{}
	return max(cap(e.text), cap(e.patch), cap(e.result), cap(e.answer)) <= maxKept
}

func (e *encoded) read() (ok bool) {
	e.review, ok = review.Read(e.body)
	e.review.Meta.Namespace = e.review.Namespace
	return ok
}

func (e *encoded) metadata() (*metav1.ObjectMeta, error) { return &e.review.Meta, nil }

func (e *encoded) template() (text []byte, dryRun, ok bool) {
	if sizeOf(e.review.Meta.Annotations) > maxAnnotations {
		return nil, false, false
	}
	e.text, dryRun, ok = e.review.AppendTemplate(e.text[:0], ownPrefix)
	return e.text, dryRun, ok
}

func (e *encoded) pod() (newPod, error) {
	outline, dryRun, ok := e.review.Rest(&e.decoded)
	if !ok {
		return newPod{}, errHandOver
	}
	r := newPod{pod: &e.decoded, outline: outline, dryRun: dryRun, annotations: e.review.Meta.Annotations}
	r.exact = sizeOf(r.annotations) <= maxAnnotations
	r.pod.ObjectMeta = metav1.ObjectMeta{Namespace: e.review.Namespace, Annotations: r.annotations}
	if r.exact {
		r.pod.Annotations = ownAnnotations(r.annotations)
	}
	return r, nil
}

func (e *encoded) scratch() []byte {
	if e.patch == nil {
		e.patch = make([]byte, 0, 4<<10) // most patches have 1 to 3 KB
	}
	return e.patch
}

func (e *encoded) logger(ctx context.Context) logr.Logger {
	return logf.FromContext(ctx).WithName("admission").WithValues("namespace", e.review.Namespace, "requestID", e.review.UID)
}

// decoded is a pod in a request that the framework decoded.
type decoded admission.Request

func (d *decoded) metadata() (*metav1.ObjectMeta, error) {
	var meta metav1.PartialObjectMetadata
	if err := review.Decode(d.Object.Raw, &meta); err != nil {
		return nil, fmt.Errorf("decoding the pod's metadata: %w", err)
	}
	meta.Namespace = d.Namespace
	return &meta.ObjectMeta, nil
}

func (d *decoded) template() (text []byte, dryRun, ok bool) { return nil, false, false }

func (d *decoded) pod() (newPod, error) {
	pod := &corev1.Pod{}
	if err := review.Decode(d.Object.Raw, pod); err != nil {
		return newPod{}, fmt.Errorf("decoding the pod: %w", err)
	}
	pod.Namespace = d.Namespace
	outline, err := outlineOf(d.Object.Raw)
	return newPod{pod: pod, outline: outline, dryRun: d.DryRun != nil && *d.DryRun}, err
}

func (d *decoded) scratch() []byte { return nil }

func (d *decoded) logger(ctx context.Context) logr.Logger { return logf.FromContext(ctx) }
