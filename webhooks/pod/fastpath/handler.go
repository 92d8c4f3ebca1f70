// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"bytes"
	"context"
	"crypto/sha256"
	"net/http"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/memfit/memfit/internal/boundedjson"
	"github.com/memfit/memfit/webhooks/pod"
	"github.com/memfit/memfit/webhooks/server"
)

// maxKept is the largest buffer kept for another request. Usual pods have 4 to 20 KB; a rare large one must not stay
// for ever.
const maxKept = 64 << 10

// Handler serves [pod.Injector] without the framework's decoding and encoding, which cost more than all the rest
// together. Whatever is unusual about a request goes to the framework instead, which also knows best how to complain.
type Handler struct {
	injector *pod.Injector
	usual    http.Handler
	// used are *encoded to use again, because of what garbage costs here: for every few hundred megabytes of it, the
	// collector walks the whole cache of a large cluster.
	used sync.Pool
	// known are the outcomes for pods that came before.
	known patchCache
}

// NewHandler serves an injector, within bounds of what comes in by way of [server.Server].
func NewHandler(injector *pod.Injector) *Handler {
	return &Handler{injector: injector, usual: &admission.Webhook{Handler: injector}}
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, ok := r.Body.(*server.Body)
	if !ok || r.Header.Get("Content-Type") != "application/json" {
		h.usual.ServeHTTP(w, r)
		return
	}
	e, _ := h.used.Get().(*encoded)
	if e == nil {
		e = &encoded{known: &h.known}
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
	a := h.injector.Respond(r.Context(), e)
	if a.HandOver {
		h.handOver(w, r, e.body)
		return
	}
	if cap(a.Patch) > cap(e.patch) {
		e.patch = a.Patch
	}
	if a.Result == nil {
		e.result = AppendResult(e.result[:0], a.Patch, a.Warnings)
		a.Result = e.result
	}
	e.response = AppendReview(e.response[:0], e.review.UID, a.Result)
	write(w, e.response)
}

// handOver lets the framework answer, within the bounds. All of the request is read again: where a part of it is
// unusual, for example a second namespace after the pod, what was read of the rest may not be what counts.
func (h *Handler) handOver(w http.ResponseWriter, r *http.Request, body []byte) {
	if err := boundedjson.Check(body, &admissionv1.AdmissionReview{}); err != nil {
		h.injector.Metrics.OutOfBounds()
		h.Refuse(w, body, err.Error())
		return
	}
	h.usual.ServeHTTP(w, r)
}

func write(w http.ResponseWriter, response []byte) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(response))) // one write instead of chunks
	_, _ = w.Write(response)
}

// Refuse admits a pod unchanged of which only the beginning of the request was read, or none of it, and says why to
// whoever creates it. Without the request's UID the API server takes no answer; it then goes by the webhook's
// failurePolicy, which says the same.
func (h *Handler) Refuse(w http.ResponseWriter, beginning []byte, why string) {
	uid, ok := UID(beginning)
	if !ok {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	write(w, AppendReview(nil, uid, AppendResult(nil, nil, []string{"memfit: the pod was admitted unchanged: " + why})))
}

// encoded is a pod in the bytes of a request, and room for what is made of it.
type encoded struct {
	body                          []byte // the request's, not ours
	text, patch, result, response []byte

	scanner boundedjson.Scanner
	review  Review
	decoded corev1.Pod

	// template is what a plan reads of the pod's spec, once it was asked for; usual is false where that cannot be told.
	template      []byte
	dryRun, usual bool

	known  *patchCache
	key    cacheKey
	shared bool // its outcome may be shared under that key
}

// reset forgets the request; false when the buffers have grown too large to keep.
func (e *encoded) reset() bool {
	e.body, e.review, e.decoded, e.key, e.shared = nil, Review{}, corev1.Pod{}, cacheKey{}, false
	e.template, e.dryRun, e.usual = nil, false, false
	e.scanner.Reset(nil)
	return max(cap(e.text), cap(e.patch), cap(e.result), cap(e.response)) <= maxKept
}

func (e *encoded) read() (ok bool) {
	e.review, ok = Read(&e.scanner, e.body)
	e.review.Meta.Namespace = e.review.Namespace
	return ok
}

func (e *encoded) Metadata() (*metav1.ObjectMeta, error) { return &e.review.Meta, nil }

// Known is the outcome for a pod of the same template.
func (e *encoded) Known(inputs pod.Inputs) (o *pod.Outcome, dryRun bool) {
	if dryRun, e.shared = e.keyFor(inputs); !e.shared {
		return nil, false
	}
	return e.known.get(e.key), dryRun
}

// keyFor makes the key of the pod's outcome; ok is false where that cannot be told without decoding the pod.
func (e *encoded) keyFor(inputs pod.Inputs) (dryRun, ok bool) {
	if sizeOf(e.review.Meta.Annotations) > maxAnnotations {
		return false, false
	}
	if !e.readTemplate() || inputs.ConfigMaps && bytes.Contains(e.template, []byte("configMapRef")) {
		return false, false
	}
	e.text = e.review.AppendAnnotations(e.text, ownPrefix)
	e.key = cacheKey{inputs: inputs, template: sha256.Sum256(e.text)}
	return e.dryRun, true
}

// readTemplate walks over the pod's spec, once for its key and its plan.
func (e *encoded) readTemplate() (ok bool) {
	if e.template == nil {
		e.text, e.dryRun, e.usual = e.review.AppendTemplate(e.text[:0])
		e.template = e.text
	}
	return e.usual
}

// Remember keeps the outcome for pods of the same template.
func (e *encoded) Remember(o *pod.Outcome) {
	if e.shared {
		o.Result = e.known.add(e.key, o)
	}
}

func (e *encoded) Pod() (pod.NewPod, error) {
	if !e.readTemplate() {
		return pod.NewPod{}, pod.ErrHandOver
	}
	outline, ok := e.review.Rest(e.template, &e.decoded)
	if !ok {
		return pod.NewPod{}, pod.ErrHandOver
	}
	r := pod.NewPod{Pod: &e.decoded, Outline: outline, DryRun: e.dryRun, Annotations: e.review.Meta.Annotations}
	r.Pod.ObjectMeta = metav1.ObjectMeta{Namespace: e.review.Namespace, Annotations: r.Annotations}
	if sizeOf(r.Annotations) <= maxAnnotations {
		r.Pod.Annotations, r.Record = ownAnnotations(r.Annotations), maxResult
	}
	return r, nil
}

func (e *encoded) Scratch() []byte {
	if e.patch == nil {
		e.patch = make([]byte, 0, 4<<10) // most patches have 1 to 3 KB
	}
	return e.patch
}

func (e *encoded) Logger(ctx context.Context) logr.Logger {
	return logf.FromContext(ctx).WithName("admission").WithValues(
		"namespace", e.review.Namespace, "requestID", e.review.UID,
	)
}
