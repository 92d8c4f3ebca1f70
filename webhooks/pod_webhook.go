// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/govern"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/neighbours"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/records"
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
	// ConfigMaps knows the keys of ConfigMaps. Nil: memfit may not read them, and a variable that may come from one is left alone.
	ConfigMaps client.Reader
	// Constraints know what namespaces and nodes allow a new pod. Nil: nobody asks, and recommended sizes are given as they are.
	Constraints *constraints.Index
	// Metrics count what happened.
	Metrics *Metrics
	// Clock times admissions.
	Clock clock.PassiveClock

	known patchCache
}

// podRequest is a new pod as somebody reads it: [podHandler] from bytes, the framework's way from what it decoded.
type podRequest interface {
	// metadata is what decides who governs the pod, with the namespace of the request.
	metadata() (*metav1.ObjectMeta, error)
	// template is all that a plan for the pod is made from, as text, and whether the request is a dry run; ok is false when that cannot
	// be told without decoding the pod.
	template() (text []byte, dryRun, ok bool)
	// pod is all that a plan is made from, and what is there to patch.
	pod() (newPod, error)
	// scratch is memory for the patch.
	scratch() []byte
	// logger says which request it speaks of.
	logger(ctx context.Context) logr.Logger
}

// newPod is a request for a new pod.
type newPod struct {
	pod     *corev1.Pod
	outline review.Outline
	dryRun  bool
	// exact: nothing is in the pod that is not in its template. Other people's annotations, which are not, are here.
	exact       bool
	annotations map[string]string
}

// answer is what becomes of a pod, which is always allowed: a JSON patch and warnings, or nothing.
type answer struct {
	patch    []byte
	warnings []string
	// result is both as [review.AppendResult] writes them, if that is known already.
	result []byte
	// handOver: the request is unusual, and nothing was found out.
	handOver bool
}

// Handle answers for a pod that the framework decoded. It always allows.
func (h *PodInjector) Handle(ctx context.Context, req admission.Request) admission.Response {
	a := h.answer(ctx, (*decoded)(&req))
	response := admission.Allowed("").WithWarnings(a.warnings...)
	if len(a.patch) > 0 {
		response.Patch, response.PatchType = a.patch, ptr.To(admissionv1.PatchTypeJSONPatch)
	}
	return response
}

// answer answers for one pod.
func (h *PodInjector) answer(ctx context.Context, s podRequest) (a answer) {
	start, result := h.Clock.Now(), resultError
	defer func() {
		if p := recover(); p != nil {
			a, result = h.failOpen(ctx, s, "panic", fmt.Errorf("panic: %v\n%s", p, debug.Stack())), resultError
		}
		if !a.handOver {
			h.Metrics.observe(result, h.Clock.Since(start))
		}
	}()

	patience := &lookups{Context: ctx, deadline: start.Add(lookupTimeout)}
	defer patience.end()
	ctx = patience

	// Most pods are not governed: their metadata decides, and their spec is never decoded.
	meta, err := s.metadata()
	if err != nil {
		return h.failOpen(ctx, s, "decode", err)
	}
	if _, mirrored := meta.Annotations[mirrorPod]; mirrored {
		result = resultUngoverned
		return answer{}
	}
	ruling, err := h.Governor.Resolve(ctx, meta)
	if err != nil {
		return h.failOpen(ctx, s, "lookup", err)
	}
	if ruling.Profile == nil {
		result = resultUngoverned
		return notGoverned(ruling)
	}

	o, dryRun, err := h.outcome(ctx, s, ruling)
	if errors.Is(err, errHandOver) {
		return answer{handOver: true}
	}
	if err != nil {
		return h.failOpen(ctx, s, "plan", err)
	}
	result = resultGoverned
	if !dryRun {
		for _, c := range o.counters {
			c.Inc()
		}
	}
	return o.answer
}

// outcome makes the plan and the patch that carries it out, or remembers them.
func (h *PodInjector) outcome(ctx context.Context, s podRequest, ruling govern.Resolution) (o *outcome, dryRun bool, err error) {
	rec, err := h.recommendation(ctx, ruling)
	if err != nil {
		return nil, false, err
	}
	around := h.around(ruling, rec)
	like, dryRun, usual := h.likeness(s, ruling, rec, around)
	if usual {
		if o := h.known.get(like); o != nil && around.holds(o.need) {
			h.Metrics.reused.Inc()
			return o, dryRun, nil
		}
	}
	r, err := s.pod()
	if err != nil {
		return nil, false, err
	}
	in := inject.Input{Pod: r.pod, Profile: ruling.Profile, Sizes: sizes(ruling, rec), Facts: around.factsFor(r.pod), Live: live(rec), ConfigMapKeys: h.configMapKeys(ctx, r.pod)}
	plan := inject.MakePlan(in)
	if record, _ := plan.Annotation(); r.exact && len(record) > maxResult { // it may not fit beside the other annotations
		r.pod.Annotations, r.exact = r.annotations, false
		plan = inject.MakePlan(in)
	}
	o = &outcome{}
	if o.patch, err = podPatch(s.scratch(), r.outline, r.pod, plan); err != nil {
		return nil, false, err
	}
	if _, seen := r.pod.Annotations[v1alpha1.InjectedAnnotation]; !seen || len(o.patch) > 0 {
		o.warnings, o.counters = warnings(plan), h.Metrics.countersOf(plan, r.pod)
	} // else it is the second call for a pod, after other webhooks had their turn: all was said and counted in the first
	if o.need = around.need(r.pod, plan); usual && r.exact && !plan.ShortOfQuota() && around.holds(o.need) {
		o.result = h.known.add(like, o)
	}
	return o, r.dryRun, nil
}

// around is what a new pod that is sized has to fit into. The zero value is for pods that are not.
type around struct {
	asked       bool
	namespace   *constraints.Bounds
	largestNode memory.Bytes
}

// around reads what the namespace and the nodes allow, for pods that are sized; the others keep what they have.
func (h *PodInjector) around(ruling govern.Resolution, rec *v1alpha1.MemoryRecommendation) around {
	if h.Constraints == nil || rec == nil || !sized(ruling, rec) {
		return around{}
	}
	return around{asked: true, namespace: h.Constraints.In(ruling.Ref.Namespace), largestNode: h.Constraints.LargestNode()}
}

// factsFor is nil when the pod is not sized.
func (a around) factsFor(pod *corev1.Pod) *neighbours.Facts {
	if !a.asked {
		return nil
	}
	var says *neighbours.Namespace
	if a.namespace != nil {
		says = a.namespace.Namespace
	}
	facts := says.FactsFor(pod, a.largestNode)
	return &facts
}

// limitRanges tells apart what LimitRanges said at different times; 0: nothing.
func (a around) limitRanges() uint64 {
	if a.namespace == nil {
		return 0
	}
	return a.namespace.Version
}

// depends: what quotas leave depends on the pod, so that its template does not tell.
func (a around) depends() bool { return a.namespace != nil && a.namespace.Depends }

// holds says whether the quotas have room for another pod that takes so much. Each pod leaves less for the next.
func (a around) holds(need neighbours.Size) bool {
	return a.namespace == nil || a.namespace.Left.Holds(need)
}

// need is what a quota would count of a sized pod with its plan, whether or not there is one yet.
func (a around) need(pod *corev1.Pod, plan inject.Plan) neighbours.Size {
	if !a.asked {
		return neighbours.Size{}
	}
	sizes := map[string]neighbours.Size{}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if m := plan.Edit(containers[i].Name).Memory; m != nil {
				sizes[containers[i].Name] = neighbours.Size(*m)
			}
		}
	}
	return neighbours.Need(pod, sizes)
}

func warnings(plan inject.Plan) (all []string) {
	for _, w := range plan.Warnings() {
		all = append(all, "memfit: "+w)
	}
	return all
}

// recommendation is what is known of the workload of a new pod; nil when nothing in it matters to the pod.
func (h *PodInjector) recommendation(ctx context.Context, ruling govern.Resolution) (*v1alpha1.MemoryRecommendation, error) {
	rec := &v1alpha1.MemoryRecommendation{}
	key := client.ObjectKey{Namespace: ruling.Ref.Namespace, Name: govern.RecordName(ruling.Ref)}
	if err := h.Reader.Get(ctx, key, rec, client.UnsafeDisableDeepCopy); err != nil { // rec is the cache's own: only read it
		if apierrors.IsNotFound(err) {
			return nil, nil // nothing seen yet
		}
		return nil, fmt.Errorf("reading MemoryRecommendation %s: %w", key, err)
	}
	if !records.BelongTo(rec.OwnerReferences, ruling.Ref, ruling.UID) {
		return nil, nil // what was recorded of an earlier workload of that name is about another program
	}
	if !sized(ruling, rec) && !slices.ContainsFunc(rec.Status.Containers, func(c v1alpha1.ContainerRecommendation) bool { return c.Evidence.LiveSet != nil }) {
		return nil, nil
	}
	return rec, nil
}

// sized: new pods get the recommended size, because the profile's mode asks for it and nothing speaks against it.
func sized(ruling govern.Resolution, rec *v1alpha1.MemoryRecommendation) bool {
	if ruling.Paused != "" || !sizesNewPods(ruling.Profile) {
		return false
	}
	c := apimeta.FindStatusCondition(rec.Status.Conditions, v1alpha1.ConditionApplied)
	return c == nil || c.Reason != v1alpha1.ReasonConflict // else another autoscaler sizes these pods
}

// sizes are the recommended sizes for a new pod by container, if it is sized.
func sizes(ruling govern.Resolution, rec *v1alpha1.MemoryRecommendation) map[string]inject.Size {
	if rec == nil || !sized(ruling, rec) {
		return nil
	}
	sizes := make(map[string]inject.Size, len(rec.Status.Containers))
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
	return sizes
}

// live is what replicas showed of their heaps. It counts in every mode: no cap may be set that a running process could not live with.
func live(rec *v1alpha1.MemoryRecommendation) map[string]inject.Live {
	if rec == nil {
		return nil
	}
	return inject.LiveIn(rec.Status.Containers)
}

// configMapKeys are the keys of the ConfigMaps from which the pod's containers take variables. One that cannot be read may hold any key
// and is not among them; the plan then says so.
func (h *PodInjector) configMapKeys(ctx context.Context, pod *corev1.Pod) map[string][]string {
	if h.ConfigMaps == nil {
		return nil
	}
	keys := map[string][]string{}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			for _, from := range containers[i].EnvFrom {
				if from.ConfigMapRef == nil || keys[from.ConfigMapRef.Name] != nil {
					continue
				}
				var m corev1.ConfigMap
				name := client.ObjectKey{Namespace: pod.Namespace, Name: from.ConfigMapRef.Name}
				if h.ConfigMaps.Get(ctx, name, &m, client.UnsafeDisableDeepCopy) == nil { // m is the cache's own: only read it
					keys[name.Name] = slices.AppendSeq(make([]string, 0, len(m.Data)), maps.Keys(m.Data))
				}
			}
		}
	}
	return keys
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

// notGoverned leaves a pod unchanged; the person who asked for a profile that cannot be had is told.
func notGoverned(ruling govern.Resolution) answer {
	if ruling.Problem == profile.NotFound || ruling.Problem == profile.Ambiguous {
		return answer{warnings: []string{"memfit: " + ruling.Why}}
	}
	return answer{}
}

// failOpen admits the pod as it came, says so to the person who creates it, counts it and logs it.
func (h *PodInjector) failOpen(ctx context.Context, s podRequest, step string, err error) answer {
	if beyond := (*review.BoundsError)(nil); errors.As(err, &beyond) { // whoever wrote the pod can do something about it
		h.Metrics.outOfBounds.Inc()
		s.logger(ctx).Info("Admitted a pod unchanged, because it is beyond what is read", "field", beyond.Field, "why", beyond.Why)
		return answer{warnings: []string{"memfit: the pod was admitted unchanged: " + beyond.Error()}}
	}
	h.Metrics.errors.WithLabelValues(step).Inc()
	s.logger(ctx).Error(err, "Admitted a pod unchanged", "step", step)
	return answer{warnings: []string{"memfit: internal error (" + step + "), the pod was admitted unchanged; see the log of memfit"}}
}

// Register serves the injector at [PodPath].
func (h *PodInjector) Register(mux interface {
	Register(path string, hook http.Handler)
}) {
	mux.Register(PodPath, &podHandler{injector: h, usual: &admission.Webhook{Handler: h}})
}
