// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/owners"
	"github.com/memfit/memfit/internal/profile"
)

// Resolver resolves the profile of a pod. Create it with [New]; it is safe for concurrent use.
type Resolver struct {
	reader   client.Reader
	owners   owners.Resolver
	excluded []string // the namespaces that the webhook configuration excludes
	home     string   // memfit's own namespace
	index    atomic.Pointer[profile.Index]
	once     sync.Once
	built    chan struct{}
}

// New returns a Resolver that reads owners and namespaces (metadata only) and profiles from cached. apiReader reads
// owners that are missing in the cache, such as that of the first pod of a new workload; it may be nil.
func New(cached, apiReader client.Reader) *Resolver {
	return &Resolver{
		reader: cached, owners: owners.Resolver{Reader: cached, APIReader: apiReader, Gone: owners.NewGone()},
		built: make(chan struct{}),
	}
}

// Excluding excludes the namespaces that the webhook configuration excludes. Call it before anything else.
func (r *Resolver) Excluding(namespaces ...string) *Resolver {
	r.excluded = namespaces
	return r
}

// WithOwnNamespace sets memfit's own namespace, in which only profiles that change nothing are valid. The annotation
// memfit.dev/pause on it stops every change in the cluster. Call it before anything else.
func (r *Resolver) WithOwnNamespace(home string) *Resolver {
	r.home = home
	return r
}

// OwnNamespace returns memfit's own namespace; empty outside of a cluster.
func (r *Resolver) OwnNamespace() string { return r.home }

// Resolution is the workload and profile of one pod.
type Resolution struct {
	profile.Match
	// Owner is the pod's workload: its topmost controller, the pod itself, or its identity, perhaps with a class of nodes.
	owners.Owner
	// Identity identifies the pod instead of its owner, or in addition ([identity.ByNode]); nil: the owner identifies it.
	Identity *identity.Identity
	// Paused names the object with memfit.dev/pause: "true": the workload, its namespace, or memfit's own namespace.
	// Paused workloads are observed and not changed. Empty: not paused.
	Paused string
}

// Resolve resolves one pod, whose namespace must be set. It returns an error if a lookup failed, not for a missing
// profile; with [owners.ErrNotSeen], the Resolution still has the best known name of the workload.
func (r *Resolver) Resolve(ctx context.Context, pod metav1.Object) (Resolution, error) {
	owner, err := r.owners.Owner(ctx, pod)
	return r.govern(ctx, pod, owner, err)
}

// govern finds the profile of a pod. owner and lost are the results of the lookup of its owner.
func (r *Resolver) govern(ctx context.Context, pod metav1.Object, owner owners.Owner, lost error) (Resolution, error) {
	out := Resolution{Owner: owner}
	why := r.outOfReach(pod)
	switch {
	case why != "" && (lost == nil || errors.Is(lost, owners.ErrNotSeen)): // whatever its owner is
		out.Match = profile.Match{Problem: profile.Excluded, Why: why}
		return out, nil
	case lost != nil:
		return out, fmt.Errorf("finding the workload of pod %s/%s: %w", pod.GetNamespace(), pod.GetName(), lost)
	}
	onNamespace, labels, err := r.namespace(ctx, pod.GetNamespace())
	if err != nil {
		return out, err
	}
	out.Match = r.index.Load().Match(profile.Subject{
		Namespace: pod.GetNamespace(), PodLabels: pod.GetLabels(), PodAnnotations: pod.GetAnnotations(),
		WorkloadAnnotations: owner.Annotations, NamespaceAnnotations: onNamespace, NamespaceLabels: labels,
	})
	if id, found := identity.Find(pod, owner.Ref, out.Profile.Identity()); found { // the owner does not outlive the pod
		ref := id.Ref(owner.Ref.Namespace)
		out.Identity = &id
		out.Owner = owners.Owner{Ref: ref, UID: identity.UID(ref), Annotations: pod.GetAnnotations()}
	} else if full, isPod := pod.(*corev1.Pod); isPod {
		out = r.InNodeClass(ctx, full, out)
	}
	if out.Paused, err = r.pausedBy(ctx, out.Owner, onNamespace); err != nil {
		return Resolution{Owner: out.Owner}, err
	}
	if n := out.Profile; n != nil && r.ownPod(pod) && !n.OnlyMeasures() {
		out.Match = profile.Match{Problem: profile.Excluded, Why: fmt.Sprintf("memfit changes nothing in its own namespace "+
			"%s: a profile for it must have tuning.mode: Disabled, sizing.mode: Recommend and drift.action: Report, for all "+
			"containers", r.home)}
	}
	return out, nil
}

// ownPod reports whether the pod is in memfit's own namespace, which the webhook configuration excludes.
func (r *Resolver) ownPod(pod metav1.Object) bool {
	return r.home != "" && pod.GetNamespace() == r.home
}

// pausedBy returns the object whose annotation pauses changes; empty: none.
func (r *Resolver) pausedBy(ctx context.Context, owner owners.Owner, onNamespace map[string]string) (string, error) {
	switch {
	case owner.Annotations[v1alpha1.PauseAnnotation] == "true":
		return v1alpha1.PauseAnnotation + " on " + owner.Ref.Whole().String(), nil
	case onNamespace[v1alpha1.PauseAnnotation] == "true":
		return v1alpha1.PauseAnnotation + " on Namespace " + owner.Ref.Namespace, nil
	case r.home == "":
		return "", nil
	}
	home, _, err := r.namespace(ctx, r.home)
	if err != nil || home[v1alpha1.PauseAnnotation] != "true" {
		return "", err
	}
	return v1alpha1.PauseAnnotation + " on Namespace " + r.home + ", which stops every change in the cluster", nil
}

// outOfReach returns why memfit never manages a pod; empty: it may.
func (r *Resolver) outOfReach(pod metav1.Object) string {
	if slices.Contains(r.excluded, pod.GetNamespace()) && !r.ownPod(pod) {
		return "namespace " + pod.GetNamespace() + " is excluded (--exclude-namespaces)"
	}
	if c := metav1.GetControllerOfNoCopy(pod); c != nil && c.Kind == "Node" {
		return "static pods are not supported: change the manifest on the node"
	}
	return ""
}

// Rebuild reads all profiles and makes them effective. Their specs belong to the cache: do not change them.
func (r *Resolver) Rebuild(ctx context.Context) error {
	_, _, err := r.rebuild(ctx)
	return err
}

// rebuild is Rebuild, but also returns the changes and the number of profiles. It must not run concurrently.
func (r *Resolver) rebuild(ctx context.Context) ([]Change, int, error) {
	var namespaced v1alpha1.MemoryProfileList
	if err := r.reader.List(ctx, &namespaced, client.UnsafeDisableDeepCopy); err != nil {
		return nil, 0, fmt.Errorf("listing MemoryProfiles: %w", err)
	}
	var clusterWide v1alpha1.ClusterMemoryProfileList
	if err := r.reader.List(ctx, &clusterWide, client.UnsafeDisableDeepCopy); err != nil {
		return nil, 0, fmt.Errorf("listing ClusterMemoryProfiles: %w", err)
	}
	profiles := make([]profile.Profile, 0, len(namespaced.Items)+len(clusterWide.Items))
	for i := range namespaced.Items {
		profiles = append(profiles, profile.Of(&namespaced.Items[i]))
	}
	for i := range clusterWide.Items {
		profiles = append(profiles, profile.OfCluster(&clusterWide.Items[i]))
	}
	index := profile.NewIndex(profiles)
	changed := changes(r.index.Swap(index), index)
	r.once.Do(func() { close(r.built) })
	return changed, len(profiles), nil
}

// Profiles returns the effective profiles, merged with their defaults; nil before they were read.
func (r *Resolver) Profiles() *profile.Index { return r.index.Load() }

// Built returns a channel that is closed after the first Rebuild. Until then, no profile governs a pod.
func (r *Resolver) Built() <-chan struct{} { return r.built }

// namespace returns the annotations and labels of a namespace; missing: none. The cache owns them: do not change them.
func (r *Resolver) namespace(ctx context.Context, name string) (annotations, labels map[string]string, err error) {
	ns := &metav1.PartialObjectMetadata{TypeMeta: namespaceKind}
	err = r.reader.Get(ctx, client.ObjectKey{Name: name}, ns, client.UnsafeDisableDeepCopy) // only read
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return ns.Annotations, ns.Labels, nil
}
