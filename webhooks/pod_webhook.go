// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/json"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/govern"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/review"
)

// PodPath is where the API server sends pods.
const PodPath = "/mutate--v1-pod"

// lookupTimeout bounds all lookups of one admission. They are answered from caches in microseconds; the time is for a cache that
// is not synced yet. It is well below the webhook's own timeout of 2s, so that the pod goes on with a reason instead of without.
const lookupTimeout = 300 * time.Millisecond

// mirrorPod is the annotation on the API server's picture of a static pod: changing it changes nothing that runs.
const mirrorPod = "kubernetes.io/config.mirror"

// The marker names the settings of the configuration; selectors and match conditions are in config/webhook.
//
// +kubebuilder:webhook:path=/mutate--v1-pod,mutating=true,failurePolicy=ignore,sideEffects=None,groups="",resources=pods,verbs=create,versions=v1,name=mpod.memfit.dev,admissionReviewVersions=v1,reinvocationPolicy=IfNeeded,timeoutSeconds=2

// PodInjector gives new pods what their profile says. It is an [admission.Handler] and not an admission.Defaulter, because a
// Defaulter cannot return warnings and turns every error into a denial.
type PodInjector struct {
	// Governor knows profiles and owners.
	Governor *govern.Governor
	// Reader reads MemoryRecommendations from the cache, for sizes.
	Reader client.Reader
	// Metrics count what happened.
	Metrics *Metrics
	// Clock times admissions.
	Clock clock.PassiveClock
}

// Handle answers for one pod. It always allows.
func (h *PodInjector) Handle(ctx context.Context, req admission.Request) (response admission.Response) {
	start, result := h.Clock.Now(), resultError
	defer func() {
		if p := recover(); p != nil {
			response = h.failOpen(ctx, "panic", fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
		h.Metrics.observe(result, h.Clock.Since(start))
	}()

	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()

	// Most pods are not governed: their metadata decides, and their spec is never decoded.
	var meta metav1.PartialObjectMetadata
	if !review.Metadata(req.Object.Raw, &meta.ObjectMeta) {
		meta = metav1.PartialObjectMetadata{}
		if err := json.UnmarshalCaseSensitivePreserveInts(req.Object.Raw, &meta); err != nil {
			return h.failOpen(ctx, "decode", fmt.Errorf("decoding the pod's metadata: %w", err))
		}
	}
	meta.Namespace = req.Namespace
	if _, mirrored := meta.Annotations[mirrorPod]; mirrored {
		result = resultUngoverned
		return admission.Allowed("")
	}
	ruling, err := h.Governor.Rule(ctx, &meta)
	if err != nil {
		return h.failOpen(ctx, "lookup", err)
	}
	if ruling.Profile == nil {
		result = resultUngoverned
		return notGoverned(ruling)
	}

	p, err := h.plan(ctx, req, &meta.ObjectMeta, ruling)
	if err != nil {
		return h.failOpen(ctx, "plan", err)
	}
	result = resultGoverned
	response = admission.Allowed("")
	response.Patches = p.patch
	if p.again() {
		return response
	}
	if req.DryRun == nil || !*req.DryRun {
		h.count(p)
	}
	for _, w := range p.plan.Warnings() {
		response.Warnings = append(response.Warnings, "memfit: "+w)
	}
	return response
}

// planned is a pod, what is to become of it, and the patch that does it.
type planned struct {
	pod   *corev1.Pod
	plan  inject.Plan
	patch []jsonpatch.Operation
}

// again is true for a second call for the same pod, after other webhooks had their turn: all was said and counted in the first.
func (p *planned) again() bool {
	_, seen := p.pod.Annotations[v1alpha1.InjectedAnnotation]
	return seen && len(p.patch) == 0
}

// plan makes the plan and the patch that carries it out. meta is what was decoded of the pod's metadata.
func (h *PodInjector) plan(ctx context.Context, req admission.Request, meta *metav1.ObjectMeta, ruling govern.Ruling) (*planned, error) {
	pod := corev1.Pod{ObjectMeta: *meta}
	outline, ok := review.Rest(req.Object.Raw, &pod)
	if !ok {
		pod = corev1.Pod{}
		if err := json.UnmarshalCaseSensitivePreserveInts(req.Object.Raw, &pod); err != nil {
			return nil, fmt.Errorf("decoding the pod: %w", err)
		}
		var err error
		if outline, err = outlineOf(req.Object.Raw); err != nil {
			return nil, err
		}
	}
	pod.Namespace = req.Namespace
	sizes, err := h.sizes(ctx, ruling)
	if err != nil {
		return nil, err
	}
	plan := inject.MakePlan(inject.Input{Pod: &pod, Profile: ruling.Profile, Sizes: sizes})
	after := pod.DeepCopy()
	plan.Apply(after)
	patch, err := podPatch(outline, &pod, after)
	return &planned{pod: &pod, plan: plan, patch: patch}, err
}

// sizes are the recommended sizes for new pods, if the profile's mode asks for them and there are any.
func (h *PodInjector) sizes(ctx context.Context, ruling govern.Ruling) (map[string]inject.Size, error) {
	if ruling.Paused || !sizesNewPods(ruling.Profile) {
		return nil, nil
	}
	var rec v1alpha1.MemoryRecommendation
	key := client.ObjectKey{Namespace: ruling.Ref.Namespace, Name: govern.RecordName(ruling.Ref)}
	if err := h.Reader.Get(ctx, key, &rec); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil // nothing recommended yet
		}
		return nil, fmt.Errorf("reading MemoryRecommendation %s: %w", key, err)
	}
	if c := apimeta.FindStatusCondition(rec.Status.Conditions, v1alpha1.ConditionApplied); c != nil && c.Reason == v1alpha1.ReasonConflict {
		return nil, nil // another autoscaler sizes these pods
	}
	sizes := map[string]inject.Size{}
	for _, c := range rec.Status.Containers {
		if c.Recommended == nil {
			continue
		}
		var size inject.Size
		if q := c.Recommended.Limit; q != nil {
			size.Limit = memory.FromQuantity(*q)
		}
		if q := c.Recommended.Request; q != nil {
			size.Request = memory.FromQuantity(*q)
		}
		sizes[c.Container] = size
	}
	return sizes, nil
}

// sizesNewPods: every mode that changes anything starts with new pods.
func sizesNewPods(p *profile.Named) bool {
	switch p.Spec.Sizing.Mode {
	case v1alpha1.SizingOnCreate, v1alpha1.SizingInPlace, v1alpha1.SizingInPlaceOrEvict:
		return true
	default:
		return false
	}
}

// notGoverned allows a pod unchanged; the person who asked for a profile that cannot be had is told.
func notGoverned(ruling govern.Ruling) admission.Response {
	response := admission.Allowed("")
	if ruling.Problem == profile.NotFound || ruling.Problem == profile.Ambiguous {
		response.Warnings = []string{"memfit: " + ruling.Why}
	}
	return response
}

// failOpen admits the pod as it came, says so to the person who creates it, counts it and logs it.
func (h *PodInjector) failOpen(ctx context.Context, step string, err error) admission.Response {
	h.Metrics.errors.WithLabelValues(step).Inc()
	logf.FromContext(ctx).Error(err, "Admitted a pod unchanged", "step", step)
	return admission.Allowed("").WithWarnings("memfit: internal error (" + step + "), the pod was admitted unchanged; see the log of memfit")
}

// count tells what became of each container the plan speaks of.
func (h *PodInjector) count(p *planned) {
	settings := p.plan.Settings()
	for _, containers := range [][]corev1.Container{p.pod.Spec.InitContainers, p.pod.Spec.Containers} {
		for i := range containers {
			name := containers[i].Name
			runtime := p.plan.Growth(name).Name
			if runtime == "" {
				continue // not managed
			}
			done := "nothing"
			if len(settings[name]) > 0 {
				done = "injected"
			}
			h.Metrics.injections.WithLabelValues(runtime, done).Inc()
		}
	}
}

// Register serves the injector at [PodPath].
func (h *PodInjector) Register(mux interface {
	Register(path string, hook http.Handler)
}) {
	mux.Register(PodPath, &podHandler{injector: h, usual: &admission.Webhook{Handler: h}})
}
