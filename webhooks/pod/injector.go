// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/boundedjson"
	"github.com/memfit/memfit/internal/constraintindex"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/records"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Path is where the API server sends pods.
const Path = "/mutate--v1-pod"

// lookupTimeout bounds the lookups of one admission before its kills are read, and again those after. They are answered
// from caches in microseconds; the time is for a cache that is not synced yet. It is well below the webhook's own
// timeout of 2s, so that the pod goes on with a reason instead of without.
const lookupTimeout = 300 * time.Millisecond

// The marker names the settings of the configuration; selectors and match conditions are in config/webhook.
//
// +kubebuilder:webhook:path=/mutate--v1-pod,mutating=true,failurePolicy=ignore,sideEffects=None,groups={"",batch},resources=pods;jobs,verbs=create,versions=v1,name=mpod.memfit.dev,admissionReviewVersions=v1,reinvocationPolicy=IfNeeded,timeoutSeconds=2

// Injector gives new pods what their profile says.
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
	// Kills are those that the recommendation may not contain yet. Nil: none.
	Kills *PendingKills
	// Canaries are the permissions for canaries that this replica has used.
	Canaries *Canaries
	// Trials are the workloads of which no pod was seen since memfit changed some. Nil: none.
	Trials *Trials
	// Metrics count what happened.
	Metrics *Metrics
	// Clock times admissions.
	Clock clock.PassiveClock
}

// Answer answers for one pod, or for a suspended Job. It always allows.
func (h *Injector) Answer(ctx context.Context, asked *review) (a *admissionv1.AdmissionResponse) {
	start, result := h.Clock.Now(), resultError
	defer func() {
		if p := recover(); p != nil {
			a, result = h.failOpen(ctx, asked, "panic", fmt.Errorf("panic: %v\n%s", p, debug.Stack())), resultError
		}
		h.Metrics.observe(result, h.Clock.Since(start))
	}()
	if kind, queued := workloadkind.Queued(asked.Resource.Resource); queued {
		a, result = h.job(ctx, asked, kind)
		return a
	}
	// Most pods are not governed: their metadata decides, and their spec is never decoded.
	meta, err := asked.meta()
	if err != nil {
		return h.failOpen(ctx, asked, "decode", err)
	}
	if _, mirrored := meta.Annotations[corev1.MirrorPodAnnotationKey]; mirrored { // changing it changes nothing that runs
		result = resultUngoverned
		return allowed()
	}
	resolved, err := h.resolve(ctx, meta)
	if err != nil {
		return h.failOpen(ctx, asked, "lookup", err)
	}
	if resolved.Profile == nil {
		result = resultUngoverned
		return notGoverned(resolved)
	}
	if a, err = h.inject(ctx, asked, meta, resolved); err != nil {
		return h.failOpen(ctx, asked, "plan", err)
	}
	result = resultGoverned
	return a
}

func (h *Injector) resolve(ctx context.Context, meta *metav1.ObjectMeta) (policy.Resolution, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	return h.Resolver.Resolve(ctx, meta)
}

// inject makes the plan for a governed pod, and the patch that carries it out.
func (h *Injector) inject(
	ctx context.Context, asked *review, meta *metav1.ObjectMeta, resolved policy.Resolution,
) (*admissionv1.AdmissionResponse, error) {
	pod, err := asked.pod(meta)
	if err != nil {
		return nil, err
	}
	resolved = h.Resolver.InNodeClass(ctx, pod, resolved)
	in, err := h.input(ctx, resolved, pod)
	if err != nil {
		return nil, err
	}
	_, seen := pod.Annotations[v1alpha1.InjectedAnnotation]
	var plan inject.Plan
	if in.canary && in.rec.Status.Canary != nil {
		plan = h.Canaries.plan(in.Input, in.rec, seen, asked.DryRun)
	} else {
		plan = inject.MakePlan(in.Input)
	}
	a := allowed()
	if err := patch(a, plan.Patch(pod), ""); err != nil {
		return nil, err
	}
	if seen && len(a.Patch) == 0 {
		return a, nil // the second call for a pod, after other webhooks: the first one has warned and counted
	}
	of := memory.Workload{Ref: resolved.Ref, UID: resolved.UID}
	if !seen && len(a.Patch) > 0 && h.Trials.leave(ctx, meta, of, h.Clock.Now(), asked.DryRun) {
		h.Metrics.errors.WithLabelValues("refused").Inc()
		return allowed("the pod was left as it came, because none that memfit changed was created; see the Event " +
			v1alpha1.EventPodsNotCreated + " of its workload"), nil
	}
	if !asked.DryRun {
		h.Metrics.count(plan, pod)
	}
	a.Warnings = allowed(plan.Warnings()...).Warnings
	return a, nil
}

// patch has an answer change a pod, which is at a path of the object sent.
func patch(a *admissionv1.AdmissionResponse, pod inject.Patch, at string) error {
	if len(pod) == 0 {
		return nil
	}
	for i := range pod {
		pod[i].Path = at + pod[i].Path
	}
	text, err := json.Marshal(pod)
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	a.Patch, a.PatchType = text, ptr.To(admissionv1.PatchTypeJSONPatch)
	return nil
}

// input is what a plan is made from, and the recommendation behind it.
type input struct {
	inject.Input

	rec *v1alpha1.MemoryRecommendation
	// canary: the pod may be a canary.
	canary bool
}

// input gathers what a plan for a governed pod is made from.
func (h *Injector) input(ctx context.Context, resolved policy.Resolution, pod *corev1.Pod) (input, error) {
	pending := h.pending(ctx, resolved, pod)
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	rec, err := h.recommendation(ctx, resolved)
	if err != nil {
		return input{}, err
	}
	offers := offersOf(resolved, rec)
	sizes := raised(resolved, offers, pending, h.Clock.Now())
	facts, err := h.facts(ctx, resolved, sizes, rec, pod)
	if err != nil {
		return input{}, err
	}
	return input{rec: rec, canary: len(offers) > 0 && len(pending) == 0, Input: inject.Input{
		Pod: pod, Profile: resolved.Profile, Sizes: sizes, Facts: facts,
		// in every mode: no cap may be set that a running process could not live with
		Observed:      inject.ObservedIn(rec.Status.Containers),
		ConfigMapKeys: h.configMapKeys(ctx, pod), PerRun: identity.Is(resolved.Ref),
	}}, nil
}

// pending are the kills of a pod's identity that its recommendation may not contain yet, by container. They are read
// from the API server if a kill would change the pod. When that fails, the pod gets what is known.
func (h *Injector) pending(
	ctx context.Context, resolved policy.Resolution, pod *corev1.Pod,
) map[string][]pendingKill {
	if h.Kills == nil || !identity.Is(resolved.Ref) || resolved.Paused != "" ||
		!resolved.Profile.Spec.Sizing.Mode.SizesNewPods() || !hasMemoryLimit(pod) {
		return nil
	}
	err := h.Kills.Read(ctx, resolved.Ref.Namespace, resolved.Identity)
	h.Metrics.countRead(err)
	if err != nil {
		logf.FromContext(ctx).WithName("admission").Info(
			"Could not read the failed pods of an identity; an OOM kill of the last seconds may be missing", "workload",
			resolved.Ref, "err", err.Error(),
		)
	}
	return h.Kills.Of(resolved.Ref)
}

// hasMemoryLimit reports whether a container of the pod can be OOM-killed at its own limit.
func hasMemoryLimit(pod *corev1.Pod) bool {
	limited := func(c corev1.Container) bool { return !c.Resources.Limits.Memory().IsZero() }
	return slices.ContainsFunc(pod.Spec.Containers, limited) || slices.ContainsFunc(pod.Spec.InitContainers, limited)
}

// facts are what the namespace and the nodes allow a new pod that is sized; nil when it is not.
func (h *Injector) facts(
	ctx context.Context, resolved policy.Resolution, sizes map[string]inject.Offer, rec *v1alpha1.MemoryRecommendation,
	pod *corev1.Pod,
) (*constraints.Facts, error) {
	if h.Constraints == nil || len(sizes) == 0 {
		return nil, nil
	}
	objects, err := h.Constraints.In(ctx, resolved.Ref.Namespace)
	if err != nil {
		return nil, err
	}
	facts := constraints.About(resolved.Ref, nil, pod, objects)
	facts.LargestNode, facts.NodeIs = largestNode(pod, rec, &facts)
	return &facts, nil
}

// largestNode is the allocatable memory of the largest node that is known to take a pod, and which node that is: the
// one that its controller has chosen, or one that takes pods of its workload, whether that exists now or not. Before
// one ran, any node may take it; 0: none is known. A chosen node may be so new that this replica has not seen it yet:
// it is taken to be as small as any.
func largestNode(
	pod *corev1.Pod, rec *v1alpha1.MemoryRecommendation, facts *constraints.Facts,
) (memory.Bytes, string) {
	chosen := identity.NodeOf(pod)
	if size := facts.NodeSize[chosen]; size > 0 {
		return size, "its node"
	}
	if chosen != "" {
		if smallest := smallestNode(facts.NodeSize); smallest > 0 {
			return smallest, "its node is new to memfit, and the smallest node"
		}
	}
	if largest := rec.Status.LargestNode; largest != nil {
		return memory.FromQuantity(*largest), "the largest node known to run pods of this workload"
	}
	return facts.LargestNode, "the largest node"
}

// smallestNode is the least allocatable memory of a node; 0: none is known.
func smallestNode(nodes map[string]memory.Bytes) (smallest memory.Bytes) {
	for _, size := range nodes {
		if size > 0 && (smallest == 0 || size < smallest) {
			smallest = size
		}
	}
	return smallest
}

// recommendation is what is known of the workload of a new pod; an empty one when nothing is.
func (h *Injector) recommendation(
	ctx context.Context, resolved policy.Resolution,
) (*v1alpha1.MemoryRecommendation, error) {
	rec := &v1alpha1.MemoryRecommendation{}
	key := client.ObjectKey{Namespace: resolved.Ref.Namespace, Name: policy.RecordName(resolved.Ref)}
	// rec is the cache's own: only read it
	if err := h.Reader.Get(ctx, key, rec, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return rec, nil // nothing seen yet
		}
		return nil, fmt.Errorf("reading MemoryRecommendation %s: %w", key, err)
	}
	if !records.BelongTo(rec.OwnerReferences, resolved.Ref, resolved.UID) {
		// what was recorded of an earlier workload of that name is about another program
		return &v1alpha1.MemoryRecommendation{}, nil
	}
	return rec, nil
}

// offersOf are the sizes for a new pod by container, if the profile's mode asks for them. The recommendation offers
// none while another autoscaler sizes these pods, and during a pause the size that the running pods have.
func offersOf(resolved policy.Resolution, rec *v1alpha1.MemoryRecommendation) map[string]inject.Offer {
	if !resolved.Profile.Spec.Sizing.Mode.SizesNewPods() {
		return nil
	}
	return inject.OffersIn(rec.Status.Containers)
}

// configMapKeys are the keys of the ConfigMaps from which the pod's containers take variables. One that cannot be read
// may hold any key and is not among them; the plan then says so.
func (h *Injector) configMapKeys(ctx context.Context, pod *corev1.Pod) map[string]map[string]bool {
	if h.ConfigMaps == nil {
		return nil
	}
	keys := map[string]map[string]bool{}
	for c := range constraints.Containers(&pod.Spec) {
		for _, from := range c.EnvFrom {
			if from.ConfigMapRef == nil || keys[from.ConfigMapRef.Name] != nil {
				continue
			}
			var m corev1.ConfigMap
			name := client.ObjectKey{Namespace: pod.Namespace, Name: from.ConfigMapRef.Name}
			if h.ConfigMaps.Get(ctx, name, &m, client.UnsafeDisableDeepCopy) == nil { // m is the cache's own: only read it
				keys[name.Name] = make(map[string]bool, len(m.Data))
				for key := range m.Data {
					keys[name.Name][key] = true
				}
			}
		}
	}
	return keys
}

// notGoverned leaves a pod unchanged, with a warning if it names a profile that cannot be used.
func notGoverned(resolved policy.Resolution) *admissionv1.AdmissionResponse {
	if resolved.Problem == profile.NotFound || resolved.Problem == profile.Ambiguous {
		return allowed(resolved.Why)
	}
	return allowed()
}

// failOpen admits the pod as it came, with a warning for the client that creates it, a log line and a count.
func (h *Injector) failOpen(
	ctx context.Context, asked *review, step string, err error,
) *admissionv1.AdmissionResponse {
	log := logf.FromContext(ctx).WithName("admission").WithValues("namespace", asked.Namespace, "requestID", asked.UID)
	// the author of the pod can do something about it
	if beyond := (*boundedjson.BoundsError)(nil); errors.As(err, &beyond) {
		h.Metrics.outOfBounds.Inc()
		log.Info("Admitted a pod unchanged, because it is beyond what is read", "field", beyond.Field, "why", beyond.Why)
		return allowed("the pod was admitted unchanged: " + beyond.Error())
	}
	h.Metrics.errors.WithLabelValues(step).Inc()
	log.Error(err, "Admitted a pod unchanged", "step", step)
	return allowed("internal error (" + step + "), the pod was admitted unchanged; see the log of memfit")
}
