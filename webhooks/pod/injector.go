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

// Path is the path to which the API server sends pods.
const Path = "/mutate--v1-pod"

// lookupTimeout limits each of the two lookups of an admission: the profile, and the recommendation with its
// constraints. Caches respond in microseconds; the timeout is for caches that have not synced yet. It is well below the
// webhook's timeout of 2 s, so that the response can contain the error as a warning.
const lookupTimeout = 300 * time.Millisecond

// The marker has the webhook's settings; selectors and match conditions are in config/webhook.
//
// +kubebuilder:webhook:path=/mutate--v1-pod,mutating=true,failurePolicy=ignore,sideEffects=None,groups={"",batch},resources=pods;jobs,verbs=create,versions=v1,name=mpod.memfit.dev,admissionReviewVersions=v1,reinvocationPolicy=IfNeeded,timeoutSeconds=2

// Injector applies profiles to new pods.
type Injector struct {
	// Resolver resolves profiles and owners.
	Resolver *policy.Resolver
	// Reader reads MemoryRecommendations from the cache, for sizes.
	Reader client.Reader
	// ConfigMaps reads the keys of ConfigMaps. nil: memfit may not read ConfigMaps, and does not set a variable that a
	// ConfigMap may define.
	ConfigMaps client.Reader
	// Constraints returns the limits of namespaces and nodes for a new pod. nil: do not check recommended sizes against
	// them.
	Constraints *constraintindex.Index
	// Kills returns OOM kills that the recommendation may not contain yet. nil: none.
	Kills *PendingKills
	// Canaries stores the canary permissions that this replica has used.
	Canaries *Canaries
	// Trials stores the workloads whose changed pods were not created. nil: none.
	Trials *Trials
	// Metrics counts admissions.
	Metrics *Metrics
	// Clock measures the time of admissions.
	Clock clock.PassiveClock
}

// Respond returns the response for one pod, or for a suspended Job. It always allows the request.
func (h *Injector) Respond(ctx context.Context, req *review) (a *admissionv1.AdmissionResponse) {
	start, result := h.Clock.Now(), resultError
	defer func() {
		if p := recover(); p != nil {
			a, result = h.failOpen(ctx, req, "panic", fmt.Errorf("panic: %v\n%s", p, debug.Stack())), resultError
		}
		h.Metrics.observe(result, h.Clock.Since(start))
	}()
	if kind, queued := workloadkind.Queued(req.Resource.Resource); queued {
		a, result = h.job(ctx, req, kind)
		return a
	}
	// The spec is decoded only if the metadata shows that a profile governs the pod: most pods have none.
	meta, err := req.meta()
	if err != nil {
		return h.failOpen(ctx, req, "decode", err)
	}
	if _, mirrored := meta.Annotations[corev1.MirrorPodAnnotationKey]; mirrored { // changes would have no effect
		result = resultUngoverned
		return allowed()
	}
	resolved, err := h.resolve(ctx, meta)
	if err != nil {
		return h.failOpen(ctx, req, "lookup", err)
	}
	if resolved.Profile == nil {
		result = resultUngoverned
		return notGoverned(resolved)
	}
	if a, err = h.inject(ctx, req, meta, resolved); err != nil {
		return h.failOpen(ctx, req, "plan", err)
	}
	result = resultGoverned
	return a
}

func (h *Injector) resolve(ctx context.Context, meta *metav1.ObjectMeta) (policy.Resolution, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	return h.Resolver.Resolve(ctx, meta)
}

// inject returns the response for a governed pod.
func (h *Injector) inject(
	ctx context.Context, req *review, meta *metav1.ObjectMeta, resolved policy.Resolution,
) (*admissionv1.AdmissionResponse, error) {
	pod, err := req.pod(meta)
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
	now := h.Clock.Now()
	if in.canary && in.rec.Status.Canary != nil && !h.Trials.active(resolved.Ref, now) {
		plan = h.Canaries.plan(in.Input, in.rec, seen, req.DryRun)
	} else {
		plan = inject.MakePlan(in.Input)
	}
	a := allowed()
	if err := patch(a, plan.Patch(pod), ""); err != nil {
		return nil, err
	}
	if seen && len(a.Patch) == 0 {
		return a, nil // a second call, after other webhooks; the first call has warned and counted
	}
	if !seen && len(a.Patch) > 0 && h.Trials.leaveUnchanged(meta, resolved.Ref, now, req.DryRun) {
		h.Metrics.errors.WithLabelValues("refused").Inc()
		return allowed("the pod was admitted unchanged: no pod that memfit changed was created, so another admission " +
			"policy may refuse memfit's changes; see Event " + v1alpha1.EventPodsNotCreated + " of the workload"), nil
	}
	if !req.DryRun {
		h.Metrics.count(plan, pod)
	}
	warnings := plan.Warnings()
	if resolved.Problem != "" {
		warnings = append(warnings, resolved.Why)
	}
	a.Warnings = allowed(warnings...).Warnings
	return a, nil
}

// patch adds the changes of a pod to a response. at is the path of the pod in the reviewed object.
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

// input is the input of a plan, and the recommendation that it uses.
type input struct {
	inject.Input

	rec *v1alpha1.MemoryRecommendation
	// canary is true if the pod may be a canary.
	canary bool
}

// input collects the input of a plan for a governed pod.
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
		// in every mode, because a heap cap must not be below what running processes need
		Observed:      inject.ObservedIn(rec.Status.Containers),
		ConfigMapKeys: h.configMapKeys(ctx, pod), PerRun: identity.IsIdentity(resolved.Ref),
	}}, nil
}

// pending returns the OOM kills of a pod's identity that its recommendation may not contain yet, by container. It reads
// them from the API server if a kill would change the pod. If the read fails, it returns the kills that are known.
func (h *Injector) pending(
	ctx context.Context, resolved policy.Resolution, pod *corev1.Pod,
) map[string][]pendingKill {
	if h.Kills == nil || !identity.IsIdentity(resolved.Ref) || resolved.Paused != "" ||
		!resolved.Profile.Spec.Sizing.Mode.SizesNewPods() || !hasMemoryLimit(pod) {
		return nil
	}
	err := h.Kills.Read(ctx, resolved.Ref.Namespace, resolved.Identity)
	h.Metrics.countRead(err)
	if err != nil {
		logf.FromContext(ctx).WithName("admission").Info(
			"Could not read the failed pods of an identity; OOM kills of the last seconds may be missing", "workload",
			resolved.Ref, "err", err.Error(),
		)
	}
	return h.Kills.Of(resolved.Ref)
}

// hasMemoryLimit reports whether a container of the pod has its own memory limit.
func hasMemoryLimit(pod *corev1.Pod) bool {
	limited := func(c corev1.Container) bool { return !c.Resources.Limits.Memory().IsZero() }
	return slices.ContainsFunc(pod.Spec.Containers, limited) || slices.ContainsFunc(pod.Spec.InitContainers, limited)
}

// facts returns the limits of the namespace and the nodes for a new pod with recommended sizes; nil for other pods.
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
	facts := constraints.FactsOf(resolved.Ref, nil, pod, objects)
	facts.LargestNode, facts.NodeDescription = largestNode(pod, rec, &facts)
	if refused := rec.Status.RefusedRequest; refused != nil {
		facts.Refused = memory.FromQuantity(*refused)
	}
	return &facts, nil
}

// largestNode returns the allocatable memory and a description of the largest node for a pod; 0: unknown. This is the
// node that its controller chose, otherwise the largest node known to have run its workload, otherwise the largest of
// all. If the chosen node is not in the cache yet, the smallest node counts, to be safe.
func largestNode(
	pod *corev1.Pod, rec *v1alpha1.MemoryRecommendation, facts *constraints.Facts,
) (memory.Bytes, string) {
	chosen := identity.NodeOf(pod)
	if size := facts.NodeSize[chosen]; size > 0 {
		return size, "its node"
	}
	if chosen != "" {
		if smallest := smallestNode(facts.NodeSize); smallest > 0 {
			return smallest, "memfit does not know its node yet, and the smallest node"
		}
	}
	if largest := rec.Status.LargestNode; largest != nil {
		return memory.FromQuantity(*largest), "the largest node known to run pods of this workload"
	}
	return facts.LargestNode, "the largest node"
}

// smallestNode returns the least allocatable memory of a node; 0: unknown.
func smallestNode(nodes map[string]memory.Bytes) (smallest memory.Bytes) {
	for _, size := range nodes {
		if size > 0 && (smallest == 0 || size < smallest) {
			smallest = size
		}
	}
	return smallest
}

// recommendation returns the recommendation for the workload of a new pod, empty if it has none.
func (h *Injector) recommendation(
	ctx context.Context, resolved policy.Resolution,
) (*v1alpha1.MemoryRecommendation, error) {
	rec := &v1alpha1.MemoryRecommendation{}
	key := client.ObjectKey{Namespace: resolved.Ref.Namespace, Name: policy.RecordName(resolved.Ref)}
	// rec is shared with the cache: only read it
	if err := h.Reader.Get(ctx, key, rec, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return rec, nil // no recommendation yet
		}
		return nil, fmt.Errorf("reading MemoryRecommendation %s: %w", key, err)
	}
	if !records.UsableFor(rec.OwnerReferences, resolved.Ref, resolved.UID) {
		// the record belongs to an earlier workload with this name, which may have run another program
		return &v1alpha1.MemoryRecommendation{}, nil
	}
	return rec, nil
}

// offersOf returns the sizes for a new pod by container, if the profile's mode applies them. The recommendation has no
// sizes while another autoscaler sizes these pods; during a pause it has the size of the running pods.
func offersOf(resolved policy.Resolution, rec *v1alpha1.MemoryRecommendation) map[string]inject.Offer {
	if !resolved.Profile.Spec.Sizing.Mode.SizesNewPods() {
		return nil
	}
	return inject.OffersIn(rec.Status.Containers)
}

// configMapKeys returns the keys of the ConfigMaps from which the pod's containers take variables. It omits unreadable
// ConfigMaps; the plan then reports that they may define any key.
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
			if h.ConfigMaps.Get(ctx, name, &m, client.UnsafeDisableDeepCopy) == nil { // m is the cache's: only read it
				keys[name.Name] = make(map[string]bool, len(m.Data))
				for key := range m.Data {
					keys[name.Name][key] = true
				}
			}
		}
	}
	return keys
}

// notGoverned returns the response for a pod without a profile, with a warning if it names one that does not exist.
func notGoverned(resolved policy.Resolution) *admissionv1.AdmissionResponse {
	if resolved.Problem == profile.NotFound {
		return allowed(resolved.Why)
	}
	return allowed()
}

// failOpen admits the pod unchanged, with a warning for the client that creates it, a log line and a count.
func (h *Injector) failOpen(
	ctx context.Context, req *review, step string, err error,
) *admissionv1.AdmissionResponse {
	log := logf.FromContext(ctx).WithName("admission").WithValues("namespace", req.Namespace, "requestID", req.UID)
	// the pod's author can fix this, so it is not logged as an error
	if beyond := (*boundedjson.BoundsError)(nil); errors.As(err, &beyond) {
		h.Metrics.outOfBounds.Inc()
		log.Info("Admitted a pod unchanged, because it exceeds a bound", "field", beyond.Field, "why", beyond.Why)
		return allowed("the pod was admitted unchanged: " + beyond.Error())
	}
	h.Metrics.errors.WithLabelValues(step).Inc()
	log.Error(err, "Admitted a pod unchanged", "step", step)
	return allowed("the pod was admitted unchanged after an internal error (" + step + "); see memfit's log")
}
