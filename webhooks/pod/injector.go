// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/boundedjson"
	"github.com/memfit/memfit/internal/constraintindex"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/records"
)

// Path is where the API server sends pods.
const Path = "/mutate--v1-pod"

// lookupTimeout bounds all lookups of one admission. They are answered from caches in microseconds; the time is for a
// cache that is not synced yet. It is well below the webhook's own timeout of 2s, so that the pod goes on with a reason
// instead of without.
const lookupTimeout = 300 * time.Millisecond

// mirrorPod is the annotation on the API server's picture of a static pod: changing it changes nothing that runs.
const mirrorPod = "kubernetes.io/config.mirror"

// The marker names the settings of the configuration; selectors and match conditions are in config/webhook.
//
// +kubebuilder:webhook:path=/mutate--v1-pod,mutating=true,failurePolicy=ignore,sideEffects=None,groups="",resources=pods,verbs=create,versions=v1,name=mpod.memfit.dev,admissionReviewVersions=v1,reinvocationPolicy=IfNeeded,timeoutSeconds=2

// Injector gives new pods what their profile says. It is an [admission.Handler] and not an admission.Defaulter, because
// a Defaulter cannot return warnings and turns every error into a denial.
type Injector struct {
	// Resolver knows profiles and owners.
	Resolver *policy.Resolver
	// Reader reads MemoryRecommendations from the cache, for sizes.
	Reader client.Reader
	// ConfigMaps knows the keys of ConfigMaps. Nil: memfit may not read them, and a variable that may come from one is
	// left alone.
	ConfigMaps client.Reader
	// Constraints know what namespaces and nodes allow a new pod. Nil: nobody asks, and recommended sizes are given as
	// they are.
	Constraints *constraintindex.Index
	// Canaries are the permissions for canaries that this replica has used.
	Canaries *Canaries
	// Metrics count what happened.
	Metrics *Metrics
	// Clock times admissions.
	Clock clock.PassiveClock
}

// Request is a new pod as somebody reads it: [Injector.Handle] from what the framework decoded, package fastpath from
// bytes.
type Request interface {
	// Metadata is what decides who governs the pod, with the namespace of the request.
	Metadata() (*metav1.ObjectMeta, error)
	// Known is the outcome of an earlier pod that was like this one in all that a plan reads of a pod, under the same
	// inputs besides, and whether this request is a dry run. Nil: there was none, or nobody remembers.
	Known(inputs Inputs) (o *Outcome, dryRun bool)
	// Remember keeps an outcome for the inputs that Known was asked about.
	Remember(o *Outcome)
	// Pod is all that a plan is made from, and what is there to patch; [ErrHandOver] where that cannot be told.
	Pod() (NewPod, error)
	// Scratch is memory for the patch.
	Scratch() []byte
	// Logger says which request it speaks of.
	Logger(ctx context.Context) logr.Logger
}

// Inputs are all that an outcome depends on besides the pod itself.
type Inputs struct {
	// Profile, Generation and Inherited say which spec governs, with what it takes from profiles with role Defaults.
	Profile    types.UID
	Generation int64
	Inherited  string
	// Recommendation and Version say what sizes are recommended and what is alive in running heaps; empty: nothing is
	// known.
	Recommendation types.UID
	Version        string
	// LimitRanges and LargestNode say what a recommended size has to fit into. Quotas are no part of it: see Outcome.Need.
	LimitRanges uint64
	LargestNode memory.Bytes
	// ConfigMaps: the keys of ConfigMaps are read, which may change. An outcome for a pod that names one is never
	// remembered.
	ConfigMaps bool
}

// NewPod is a request for a new pod.
type NewPod struct {
	Pod     *corev1.Pod
	Outline Outline
	DryRun  bool
	// Record: Pod has only memfit's own annotations, and all of them are in Annotations. A record of up to so many bytes
	// fits beside them for certain. 0: Pod has all annotations.
	Record      int
	Annotations map[string]string
}

// Outcome is what becomes of a pod, and of all that are like it.
type Outcome struct {
	Response

	// Counters count what became of each container that the plan speaks of.
	Counters []prometheus.Counter
	// Need is what a quota would count of the pod, if it is sized. Where one has no room for it, another outcome is right.
	Need memory.Size
}

// Response is what becomes of a pod, which is always allowed: a JSON patch and warnings, or nothing.
type Response struct {
	Patch    []byte
	Warnings []string
	// Result is both as they are written into an AdmissionReview, if that is known already.
	Result []byte
	// HandOver: the request is unusual, and nothing was found out.
	HandOver bool
}

// ErrHandOver is what is unusual about a request and seen late.
var ErrHandOver = errors.New("the request is not as API servers write it")

// Handle answers for a pod that the framework decoded. It always allows.
func (h *Injector) Handle(ctx context.Context, req admission.Request) admission.Response {
	a := h.Respond(ctx, (*decoded)(&req))
	response := admission.Allowed("").WithWarnings(a.Warnings...)
	if len(a.Patch) > 0 {
		response.Patch, response.PatchType = a.Patch, ptr.To(admissionv1.PatchTypeJSONPatch)
	}
	return response
}

// Respond decides about one pod.
func (h *Injector) Respond(ctx context.Context, s Request) (a Response) {
	start, result := h.Clock.Now(), resultError
	defer func() {
		if p := recover(); p != nil {
			a, result = h.failOpen(ctx, s, "panic", fmt.Errorf("panic: %v\n%s", p, debug.Stack())), resultError
		}
		if !a.HandOver {
			h.Metrics.observe(result, h.Clock.Since(start))
		}
	}()

	patience := &lookups{Context: ctx, deadline: start.Add(lookupTimeout)}
	defer patience.end()
	ctx = patience

	// Most pods are not governed: their metadata decides, and their spec is never decoded.
	meta, err := s.Metadata()
	if err != nil {
		return h.failOpen(ctx, s, "decode", err)
	}
	if _, mirrored := meta.Annotations[mirrorPod]; mirrored {
		result = resultUngoverned
		return Response{}
	}
	resolved, err := h.Resolver.Resolve(ctx, meta)
	if err != nil {
		return h.failOpen(ctx, s, "lookup", err)
	}
	if resolved.Profile == nil {
		result = resultUngoverned
		return notGoverned(resolved)
	}

	o, dryRun, err := h.outcome(ctx, s, resolved)
	if errors.Is(err, ErrHandOver) {
		return Response{HandOver: true}
	}
	if err != nil {
		return h.failOpen(ctx, s, "plan", err)
	}
	result = resultGoverned
	if !dryRun {
		for _, c := range o.Counters {
			c.Inc()
		}
	}
	return o.Response
}

// outcome makes the plan and the patch that carries it out, or remembers them.
func (h *Injector) outcome(
	ctx context.Context, s Request, resolved policy.Resolution,
) (o *Outcome, dryRun bool, err error) {
	rec, err := h.recommendation(ctx, resolved)
	if err != nil {
		return nil, false, err
	}
	within := h.bounds(resolved, rec)
	inputs, shared := h.inputs(resolved, rec, within)
	offers := offersOf(resolved, rec)
	canary := len(offers) > 0 && h.Canaries.allowed(rec)
	shared = shared && !canary // which is for one pod
	if shared {
		if o, dryRun := s.Known(inputs); o != nil && within.holds(o.Need) {
			h.Metrics.reused.Inc()
			return o, dryRun, nil
		}
	}
	r, err := s.Pod()
	if err != nil {
		return nil, false, err
	}
	in := inject.Input{
		Pod: r.Pod, Profile: resolved.Profile, Sizes: offers, Facts: within.factsFor(r.Pod),
		Observed: observed(rec), ConfigMapKeys: h.configMapKeys(ctx, r.Pod),
	}
	var plan inject.Plan
	if canary && !r.DryRun {
		plan = h.Canaries.plan(in, rec)
	} else {
		plan = inject.MakePlan(in)
	}
	// it may not fit beside the other annotations
	if record, _ := plan.Annotation(); r.Record > 0 && len(record) > r.Record {
		r.Pod.Annotations, shared = r.Annotations, false
		plan = inject.MakePlan(in)
	}
	o = &Outcome{}
	if o.Patch, err = podPatch(s.Scratch(), r.Outline, r.Pod, plan); err != nil {
		return nil, false, err
	}
	if _, seen := r.Pod.Annotations[v1alpha1.InjectedAnnotation]; !seen || len(o.Patch) > 0 {
		o.Warnings, o.Counters = warnings(plan), h.Metrics.countersOf(plan, r.Pod)
	} // else it is the second call for a pod, after other webhooks had their turn: all was said and counted in the first
	if o.Need = within.need(r.Pod, plan); shared && r.Record > 0 && !plan.ShortOfQuota() && within.holds(o.Need) {
		s.Remember(o)
	}
	return o, r.DryRun, nil
}

// inputs are what an outcome depends on besides the pod; ok is false where it depends on more, so that it is never
// remembered.
func (h *Injector) inputs(
	resolved policy.Resolution, rec *v1alpha1.MemoryRecommendation, within bounds,
) (in Inputs, ok bool) {
	governs := resolved.Profile
	if within.depends() || governs.UID == "" {
		return Inputs{}, false
	}
	in = Inputs{
		Profile: governs.UID, Generation: governs.Generation, Inherited: governs.Inherited(), ConfigMaps: h.ConfigMaps != nil,
	}
	if rec != nil {
		in.Recommendation, in.Version = rec.UID, rec.ResourceVersion
	}
	in.LimitRanges, in.LargestNode = within.limitRanges(), within.largestNode
	return in, true
}

// bounds are what a new pod that is sized has to fit into. The zero value is for pods that are not.
type bounds struct {
	asked       bool
	namespace   *constraintindex.Bounds
	largestNode memory.Bytes
}

// bounds reads what the namespace and the nodes allow, for pods that are sized; the others keep what they have.
func (h *Injector) bounds(resolved policy.Resolution, rec *v1alpha1.MemoryRecommendation) bounds {
	if h.Constraints == nil || rec == nil || !sized(resolved, rec) {
		return bounds{}
	}
	return bounds{
		asked: true, namespace: h.Constraints.In(resolved.Ref.Namespace), largestNode: h.Constraints.LargestNode(),
	}
}

// factsFor is nil when the pod is not sized.
func (b bounds) factsFor(pod *corev1.Pod) *constraints.Facts {
	if !b.asked {
		return nil
	}
	var says *constraints.Namespace
	if b.namespace != nil {
		says = b.namespace.Namespace
	}
	facts := says.FactsFor(pod, b.largestNode)
	return &facts
}

// limitRanges tells apart what LimitRanges said at different times; 0: nothing.
func (b bounds) limitRanges() uint64 {
	if b.namespace == nil {
		return 0
	}
	return b.namespace.Version
}

// depends: what quotas leave depends on the pod, so that its template does not tell.
func (b bounds) depends() bool { return b.namespace != nil && b.namespace.Depends }

// holds says whether the quotas have room for another pod that takes so much. Each pod leaves less for the next.
func (b bounds) holds(need memory.Size) bool {
	return b.namespace == nil || b.namespace.Remaining.Holds(need)
}

// need is what a quota would count of a sized pod with its plan, whether or not there is one yet.
func (b bounds) need(pod *corev1.Pod, plan inject.Plan) memory.Size {
	if !b.asked {
		return memory.Size{}
	}
	sizes := map[string]memory.Size{}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if m := plan.Edit(containers[i].Name).Memory; m != nil {
				sizes[containers[i].Name] = *m
			}
		}
	}
	if whole := plan.Whole(); whole != nil {
		pod = constraints.WithWhole(pod, *whole)
	}
	return constraints.Need(pod, sizes)
}

func warnings(plan inject.Plan) (all []string) {
	for _, w := range plan.Warnings() {
		all = append(all, "memfit: "+w)
	}
	return all
}

// recommendation is what is known of the workload of a new pod; nil when nothing in it matters to the pod.
func (h *Injector) recommendation(
	ctx context.Context, resolved policy.Resolution,
) (*v1alpha1.MemoryRecommendation, error) {
	rec := &v1alpha1.MemoryRecommendation{}
	key := client.ObjectKey{Namespace: resolved.Ref.Namespace, Name: policy.RecordName(resolved.Ref)}
	// rec is the cache's own: only read it
	if err := h.Reader.Get(ctx, key, rec, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil // nothing seen yet
		}
		return nil, fmt.Errorf("reading MemoryRecommendation %s: %w", key, err)
	}
	if !records.BelongTo(rec.OwnerReferences, resolved.Ref, resolved.UID) {
		return nil, nil // what was recorded of an earlier workload of that name is about another program
	}
	if !sized(resolved, rec) && !slices.ContainsFunc(
		rec.Status.Containers, func(c v1alpha1.ContainerRecommendation) bool {
			return c.Evidence.LiveSet != nil || c.FoundRuntime != nil
		},
	) {
		return nil, nil
	}
	return rec, nil
}

// sized reports whether new pods get a size: the profile's mode asks for it, and the recommendation offers one. It
// offers none while another autoscaler sizes these pods, and during a pause the size that the running pods have.
func sized(resolved policy.Resolution, rec *v1alpha1.MemoryRecommendation) bool {
	return sizesNewPods(resolved.Profile) && slices.ContainsFunc(
		rec.Status.Containers, func(c v1alpha1.ContainerRecommendation) bool { return c.NewPods != nil },
	)
}

// offersOf are the sizes for a new pod by container, if it is sized.
func offersOf(resolved policy.Resolution, rec *v1alpha1.MemoryRecommendation) map[string]inject.Offer {
	if rec == nil || !sized(resolved, rec) {
		return nil
	}
	return inject.OffersIn(rec.Status.Containers)
}

// observed is what replicas showed of their heaps, and of what they run. It counts in every mode: no cap may be set
// that a running process could not live with.
func observed(rec *v1alpha1.MemoryRecommendation) map[string]inject.Observed {
	if rec == nil {
		return nil
	}
	return inject.ObservedIn(rec.Status.Containers)
}

// configMapKeys are the keys of the ConfigMaps from which the pod's containers take variables. One that cannot be read
// may hold any key and is not among them; the plan then says so.
func (h *Injector) configMapKeys(ctx context.Context, pod *corev1.Pod) map[string][]string {
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
func sizesNewPods(p *profile.Profile) bool {
	switch p.Spec.Sizing.Mode {
	case v1alpha1.SizingOnCreate, v1alpha1.SizingInPlace, v1alpha1.SizingInPlaceOrEvict:
		return true
	default:
		return false
	}
}

// notGoverned leaves a pod unchanged; the person who asked for a profile that cannot be had is told.
func notGoverned(resolved policy.Resolution) Response {
	if resolved.Problem == profile.NotFound || resolved.Problem == profile.Ambiguous {
		return Response{Warnings: []string{"memfit: " + resolved.Why}}
	}
	return Response{}
}

// failOpen admits the pod as it came, says so to the person who creates it, counts it and logs it.
func (h *Injector) failOpen(ctx context.Context, s Request, step string, err error) Response {
	// whoever wrote the pod can do something about it
	if beyond := (*boundedjson.BoundsError)(nil); errors.As(err, &beyond) {
		h.Metrics.outOfBounds.Inc()
		s.Logger(ctx).Info(
			"Admitted a pod unchanged, because it is beyond what is read", "field", beyond.Field, "why", beyond.Why,
		)
		return Response{Warnings: []string{"memfit: the pod was admitted unchanged: " + beyond.Error()}}
	}
	h.Metrics.errors.WithLabelValues(step).Inc()
	s.Logger(ctx).Error(err, "Admitted a pod unchanged", "step", step)
	return Response{
		Warnings: []string{"memfit: internal error (" + step + "), the pod was admitted unchanged; see the log of memfit"},
	}
}
