// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/build"
)

// fromGit is the field manager of whoever applies what is in Git, as Argo CD and Flux do.
const fromGit = "git"

// applied applies an object on the server's side, as it is in Git, and reads back what became of it. It takes nothing
// from other field managers: a conflict fails the test.
func (c *cluster) applied(t *testing.T, obj client.Object) {
	t.Helper()
	c.appliedBy(t, fromGit, obj)
}

func (c *cluster) appliedBy(t *testing.T, manager string, obj client.Object) {
	t.Helper()
	if err := c.client.Apply(
		t.Context(), client.ApplyConfigurationFromUnstructured(c.manifest(t, obj)), client.FieldOwner(manager),
	); err != nil {
		t.Fatal(err)
	}
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
}

// manifest is an object without what only the API server writes.
func (c *cluster) manifest(t *testing.T, obj client.Object) *unstructured.Unstructured {
	t.Helper()
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	manifest := &unstructured.Unstructured{Object: tree}
	kind, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		t.Fatal(err)
	}
	manifest.SetGroupVersionKind(kind)
	for _, serverSide := range [][]string{
		{"status"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"},
		{"metadata", "managedFields"}, {"metadata", "creationTimestamp"},
	} {
		unstructured.RemoveNestedField(manifest.Object, serverSide...)
	}
	return manifest
}

// gitApp is an application whose manifests are in Git, in a namespace of its own.
type gitApp struct {
	*cluster
	manager    string
	mode       v1alpha1.SizingMode
	namespace  string
	deployment func() *appsv1.Deployment
	profile    func() *v1alpha1.MemoryProfile
	set        *appsv1.ReplicaSet
	pod        *corev1.Pod
}

const (
	gitLimit   = "256Mi"
	gitRequest = "128Mi"
)

// fromGit applies the manifests of an application, and does then what the Deployment controller and the kubelet do.
func (c *cluster) fromGit(t *testing.T, mode v1alpha1.SizingMode) *gitApp {
	t.Helper()
	a := &gitApp{cluster: c, manager: fromGit, mode: mode, namespace: c.namespace + "-" + strings.ToLower(string(mode))}
	a.profile = func() *v1alpha1.MemoryProfile {
		return build.Profile(a.namespace, "web", v1alpha1.RuntimeNative, func(spec *v1alpha1.MemoryProfileSpec) {
			spec.Sizing.Mode, spec.Drift.Action = mode, v1alpha1.DriftRestart
		})
	}
	a.deployment = func() *appsv1.Deployment {
		d := build.Deployment(a.namespace, "web", v1alpha1.ProfileAnnotation, "web")
		d.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(gitLimit)},
			Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(gitRequest)},
		}
		return d
	}
	c.create(t, build.Namespace(a.namespace))
	a.begins(t)
	return a
}

// example is what docs/guide/gitops.md points to: the folder that Argo CD and Flux apply, in the order in which both
// do.
func (c *cluster) example(t *testing.T, manager string) *gitApp {
	t.Helper()
	const folder = "../../config/samples/gitops/shop/"
	// Each tool has a namespace of its own here; in Git there is one.
	a := &gitApp{cluster: c, manager: manager, namespace: c.namespace + "-" + manager}
	object := func(file string, into client.Object) {
		text, err := os.ReadFile(folder + file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Fatal(err)
		}
		if into.GetNamespace() != "" {
			into.SetNamespace(a.namespace)
		}
	}
	a.profile = func() *v1alpha1.MemoryProfile {
		p := &v1alpha1.MemoryProfile{}
		object("profiles/web.yaml", p)
		return p
	}
	a.deployment = func() *appsv1.Deployment {
		d := &appsv1.Deployment{}
		object("workloads/web.yaml", d)
		return d
	}
	a.mode = a.profile().Spec.Sizing.Mode
	namespace := &corev1.Namespace{}
	object("profiles/namespace.yaml", namespace)
	namespace.Name = a.namespace
	a.applied(t, namespace)
	a.begins(t)
	return a
}

// applied is what the field manager of this application does.
func (a *gitApp) applied(t *testing.T, obj client.Object) {
	t.Helper()
	a.appliedBy(t, a.manager, obj)
}

// begins applies profile and Deployment, and waits until a pod of it would be injected.
func (a *gitApp) begins(t *testing.T) {
	t.Helper()
	c := a.cluster
	a.applied(t, a.profile())
	d := a.deployment()
	a.applied(t, d)
	a.set = build.ReplicaSet(d, "5d4f8c7b9")
	c.create(t, a.set)
	eventually(t, 30*time.Second, func() error { // the webhook knows the profile a moment after it was applied
		if _, injected := a.newPod(t).Annotations[v1alpha1.InjectedAnnotation]; !injected {
			return errors.New("a new pod would not be injected")
		}
		return nil
	})
	a.pod = a.template()
	status := a.pod.Status
	c.create(t, a.pod)
	a.pod.Status = status
	a.pod.Status.ContainerStatuses[0].Resources = &a.pod.Spec.Containers[0].Resources
	c.status(t, a.pod)
}

// template is the pod that the ReplicaSet makes of the template.
func (a *gitApp) template() *corev1.Pod {
	return build.Pod(a.namespace, "web-5d4f8c7b9-x7k2p").On("node-1").OwnedBy(a.set, "apps/v1", "ReplicaSet").Container(
		"app", build.Limit(gitLimit), build.Request(gitRequest), build.Command("/server"),
		build.Started(time.Now().Add(-time.Hour)),
	).Obj()
}

// newPod is what a pod would be that is created now.
func (a *gitApp) newPod(t *testing.T) *corev1.Pod {
	t.Helper()
	pod := a.template()
	pod.Name = "web-5d4f8c7b9-new"
	if err := a.client.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	return pod
}

// limits are those of the pod that runs, and of one that is created now.
func (a *gitApp) limits(t *testing.T) (running, created string) {
	t.Helper()
	var pod corev1.Pod
	if err := a.client.Get(t.Context(), client.ObjectKeyFromObject(a.pod), &pod); err != nil {
		t.Fatal(err)
	}
	return pod.Spec.Containers[0].Resources.Limits.Memory().String(),
		a.newPod(t).Spec.Containers[0].Resources.Limits.Memory().String()
}

// recommended is the limit that memfit recommends, once it has answered the kill.
func (a *gitApp) recommended(t *testing.T) string {
	t.Helper()
	var rec v1alpha1.MemoryRecommendation
	eventually(t, 30*time.Second, func() error {
		if err := a.client.Get(
			t.Context(), client.ObjectKey{Namespace: a.namespace, Name: "deployment-web"}, &rec,
		); err != nil {
			return err
		}
		if rec.Status.OOMKills != 1 || a.mode != v1alpha1.SizingDisabled && rec.Status.RecommendedLimit == "" {
			return errors.New("the kill is not answered yet")
		}
		return nil
	})
	if a.mode == v1alpha1.SizingDisabled {
		return ""
	}
	return rec.Status.Containers[0].Recommended.Limit.String()
}

// TestGitAndMemfitOwnDifferentFields: in every mode memfit does what the mode says, and whoever applies the manifests
// from Git again meets no conflict, changes nothing, and takes nothing back of what memfit did.
func TestGitAndMemfitOwnDifferentFields(t *testing.T) {
	c := commonCluster(t)
	room := corev1.ResourceList{
		corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourceCPU: resource.MustParse("16"),
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	c.create(t, node)
	t.Cleanup(func() { _ = c.client.Delete(context.Background(), node) })
	node.Status = corev1.NodeStatus{Allocatable: room, Capacity: room}
	if err := c.client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	p := c.start(t)
	p.ready(t)
	for _, mode := range []v1alpha1.SizingMode{
		v1alpha1.SizingDisabled, v1alpha1.SizingRecommend, v1alpha1.SizingOnCreate, v1alpha1.SizingInPlace,
		v1alpha1.SizingInPlaceOrEvict,
	} {
		t.Run(string(mode), func(t *testing.T) { c.fromGit(t, mode).ownsItsFields(t) })
	}
	t.Run("a bare pod", c.keepsABarePod)
	for _, tool := range []string{"argocd-controller", "kustomize-controller"} {
		t.Run("the example by "+tool, func(t *testing.T) { c.example(t, tool).ownsItsFields(t) })
	}
}

// keepsABarePod: the API server would refuse the manifest of a pod whose memory was changed, so memfit leaves it.
func (c *cluster) keepsABarePod(t *testing.T) {
	namespace := c.namespace + "-bare"
	manifest := func() *corev1.Pod {
		return build.Pod(namespace, "web").Annotate(v1alpha1.ProfileAnnotation, "web").On("node-1").Container(
			"app", build.Limit(gitLimit), build.Request(gitRequest), build.Command("/server"),
			build.Started(time.Now().Add(-time.Hour)),
		).Obj()
	}
	c.create(t, build.Namespace(namespace))
	c.applied(t, build.Profile(namespace, "web", v1alpha1.RuntimeNative, func(spec *v1alpha1.MemoryProfileSpec) {
		spec.Sizing.Mode = v1alpha1.SizingInPlace
	}))
	pod := manifest()
	status := pod.Status
	c.applied(t, pod)
	pod.Status = status
	pod.Status.ContainerStatuses[0].Resources = &pod.Spec.Containers[0].Resources
	c.status(t, pod)
	c.killed(t, pod)

	eventually(t, 30*time.Second, func() error {
		var rec v1alpha1.MemoryRecommendation
		key := client.ObjectKey{Namespace: namespace, Name: "pod-web"}
		if err := c.client.Get(t.Context(), key, &rec); err != nil {
			return err
		}
		said := meta.FindStatusCondition(rec.Status.Conditions, v1alpha1.ConditionApplied)
		if rec.Status.OOMKills != 1 || rec.Status.RecommendedLimit == "" || said == nil ||
			said.Reason != v1alpha1.ReasonConflict ||
			!strings.Contains(said.Message, fromGit+" (applies this pod") {
			return fmt.Errorf("%d kills, limit %q, Applied is %+v", rec.Status.OOMKills, rec.Status.RecommendedLimit, said)
		}
		return nil
	})
	for range 3 {
		again := manifest()
		c.applied(t, again)
		if limit := again.Spec.Containers[0].Resources.Limits.Memory().String(); limit != gitLimit {
			t.Errorf("the limit is %s, want %s as in Git", limit, gitLimit)
		}
	}

	// What it is left for: after a resize, the manifest is refused even of one who takes the field over.
	resize := []byte(`{"spec":{"containers":[{"name":"app","resources":{"limits":{"memory":"300Mi"}}}]}}`)
	if err := c.client.SubResource("resize").Patch(
		t.Context(), pod, client.RawPatch(types.StrategicMergePatchType, resize),
	); err != nil {
		t.Fatal(err)
	}
	err := c.client.Apply(
		t.Context(), client.ApplyConfigurationFromUnstructured(c.manifest(t, manifest())), client.FieldOwner(fromGit),
		client.ForceOwnership,
	)
	if !apierrors.IsInvalid(err) {
		t.Errorf("after a resize the manifest from Git is answered with %v, want Invalid", err)
	}
}

func (a *gitApp) ownsItsFields(t *testing.T) {
	t.Helper()
	deployment, set, namespace := a.deployment(), &appsv1.ReplicaSet{}, &corev1.Namespace{}
	workload := []struct {
		client.Object
		key client.ObjectKey
	}{
		{deployment, client.ObjectKeyFromObject(deployment)}, {set, client.ObjectKeyFromObject(a.set)},
		{namespace, client.ObjectKey{Name: a.namespace}},
	}
	var before []string
	for _, object := range workload {
		if err := a.client.Get(t.Context(), object.key, object.Object); err != nil {
			t.Fatal(err)
		}
		before = append(before, object.GetResourceVersion())
	}
	a.killed(t, a.pod)
	recommended := a.recommended(t)

	running, created := gitLimit, gitLimit
	if a.mode == v1alpha1.SizingOnCreate || a.mode == v1alpha1.SizingInPlace || a.mode == v1alpha1.SizingInPlaceOrEvict {
		created = recommended
	}
	if a.mode == v1alpha1.SizingInPlace || a.mode == v1alpha1.SizingInPlaceOrEvict {
		running = recommended
	}
	acted := func() error {
		if r, c := a.limits(t); r != running || c != created {
			return fmt.Errorf("limits are %s in the running pod and %s in a new one, want %s and %s", r, c, running, created)
		}
		return nil
	}
	eventually(t, 30*time.Second, acted)

	profile := a.profile()
	if err := a.client.Get(t.Context(), client.ObjectKeyFromObject(profile), profile); err != nil {
		t.Fatal(err)
	}
	generation := profile.Generation
	for _, obj := range []client.Object{a.deployment(), a.profile()} {
		if diff := a.difference(t, obj); diff != "" {
			t.Errorf("%s shows a difference (-live +manifest):\n%s", a.manager, diff)
		}
	}
	for range 3 { // as often as a GitOps controller reconciles
		a.applied(t, a.deployment())
		a.applied(t, a.profile())
	}
	for i, object := range workload {
		if err := a.client.Get(t.Context(), object.key, object.Object); err != nil {
			t.Fatal(err)
		}
		if now := object.GetResourceVersion(); now != before[i] {
			t.Errorf(
				"somebody wrote %T: resourceVersion was %s and is %s; managed fields: %v", object.Object, before[i], now,
				object.GetManagedFields(),
			)
		}
	}
	for _, entry := range deployment.ManagedFields {
		if entry.Manager != a.manager {
			t.Errorf("%s owns fields of the Deployment: %s", entry.Manager, entry.FieldsV1)
		}
	}
	if err := a.client.Get(t.Context(), client.ObjectKeyFromObject(profile), profile); err != nil {
		t.Fatal(err)
	}
	if profile.Generation != generation {
		t.Errorf("the spec of the profile was written: generation was %d and is %d", generation, profile.Generation)
	}
	for _, entry := range profile.ManagedFields {
		if entry.Manager != a.manager && entry.Subresource != "status" {
			t.Errorf("%s owns fields of the profile that are not its status: %s", entry.Manager, entry.FieldsV1)
		}
	}
	if err := acted(); err != nil {
		t.Errorf("after Git was applied again: %v", err)
	}

	changed := a.deployment()
	changed.Spec.Template.Spec.Containers[0].Image = "registry.example/app:2"
	if a.difference(t, changed) == "" {
		t.Error("a new image is no difference, so what is said of the manifest above means nothing")
	}
	a.applied(t, changed)
	if changed.Generation != 2 || changed.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().String() != gitLimit {
		t.Errorf("a new image from Git makes %+v of the Deployment, generation %d", changed.Spec.Template.Spec.Containers,
			changed.Generation)
	}
	if a.mode == v1alpha1.SizingInPlaceOrEvict {
		a.evicted(t)
	}
}

// difference is what both tools compare: what is there with what the API server would make of the manifest, by a dry
// run of the server-side apply.
func (a *gitApp) difference(t *testing.T, obj client.Object) string {
	t.Helper()
	manifest := a.manifest(t, obj)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(manifest.GroupVersionKind())
	if err := a.client.Get(t.Context(), client.ObjectKeyFromObject(obj), live); err != nil {
		t.Fatal(err)
	}
	if err := a.client.Apply(
		t.Context(), client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner(a.manager),
		client.ForceOwnership, client.DryRunAll,
	); err != nil {
		t.Fatal(err)
	}
	for _, object := range []*unstructured.Unstructured{live, manifest} {
		object.SetManagedFields(nil)
		object.SetResourceVersion("") // a status is written between the two reads now and then
		unstructured.RemoveNestedField(object.Object, "status")
	}
	return cmp.Diff(live.Object, manifest.Object)
}

// evicted lets the kubelet say that the node cannot hold the size, and waits for the eviction.
func (a *gitApp) evicted(t *testing.T) {
	t.Helper()
	key := client.ObjectKeyFromObject(a.pod)
	if err := a.client.Get(t.Context(), key, a.pod); err != nil {
		t.Fatal(err)
	}
	a.pod.Status.Conditions = append(a.pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible,
	})
	a.status(t, a.pod)
	eventually(t, 30*time.Second, func() error {
		err := a.client.Get(t.Context(), key, a.pod)
		if apierrors.IsNotFound(err) || err == nil && a.pod.DeletionTimestamp != nil {
			return nil
		}
		return errors.Join(err, errors.New("the pod is not evicted"))
	})
	d := a.deployment()
	a.applied(t, d)
	for _, entry := range d.ManagedFields {
		if entry.Manager != a.manager {
			t.Errorf("after the eviction %s owns fields of the Deployment: %s", entry.Manager, entry.FieldsV1)
		}
	}
}

// TestInvalidProfileFromGit: what Flux and Argo CD see of a profile before memfit runs, while it contradicts itself,
// and once it was corrected in Git.
func TestInvalidProfileFromGit(t *testing.T) {
	c := commonCluster(t)
	c.create(t, build.Namespace(c.namespace))
	invalid := build.Profile(c.namespace, "web", v1alpha1.RuntimeNodeJS)
	invalid.Spec.Selector = &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}},
	}
	c.applied(t, invalid) // no webhook answers yet
	if got := invalid.Status.ObservedGeneration; got != -1 {
		t.Fatalf("observedGeneration is %d before memfit has seen the profile, want -1", got)
	}
	p := c.start(t)
	p.ready(t)
	condition := func(kind string, status metav1.ConditionStatus, reason string) func() error {
		return func() error {
			var profile v1alpha1.MemoryProfile
			if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(invalid), &profile); err != nil {
				return err
			}
			got := meta.FindStatusCondition(profile.Status.Conditions, kind)
			if profile.Status.ObservedGeneration != profile.Generation || got == nil || got.Status != status ||
				got.Reason != reason || got.ObservedGeneration != profile.Generation {
				return fmt.Errorf("%s of generation %d is %+v, want %s: %s", kind, profile.Generation, got, status, reason)
			}
			return nil
		}
	}
	eventually(
		t, 30*time.Second, condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonInvalidSpec),
	)
	if err := condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec)(); err != nil {
		t.Error(err)
	}

	corrected := build.Profile(c.namespace, "web", v1alpha1.RuntimeNodeJS)
	c.applied(t, corrected)
	eventually(t, 30*time.Second, condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNoPodsMatched))
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(corrected), corrected); err != nil {
		t.Fatal(err)
	}
	if got := meta.FindStatusCondition(corrected.Status.Conditions, v1alpha1.ConditionStalled); got != nil {
		t.Errorf("the corrected profile is still stalled: %+v", got)
	}
	again := build.Profile(c.namespace, "web", v1alpha1.RuntimeNodeJS)
	c.applied(t, again)
	if again.Generation != corrected.Generation {
		t.Errorf("applying the profile from Git again changed it: generation was %d and is %d", corrected.Generation,
			again.Generation)
	}
}
