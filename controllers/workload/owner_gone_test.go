// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inbox"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/build"
)

// deletion is a Deployment with pods, and a memfit whose reads of the API server are counted. What it reads from the
// cache is always current.
type deletion struct {
	t          *testing.T
	store      client.WithWatch
	deployment *appsv1.Deployment
	set        *appsv1.ReplicaSet
	pods       []*corev1.Pod
	apiReads   int
	reconciles int
	memfit
}

const replicas = 20

func newDeletion(t *testing.T, annotations ...string) *deletion {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	d := &deletion{t: t, deployment: build.Deployment("shop", "web", annotations...)}
	d.deployment.UID = "deployment"
	d.set = build.ReplicaSet(d.deployment, "abc")
	d.set.UID = "set"
	objects := []client.Object{
		build.Namespace("shop"), d.deployment, d.set, build.Profile("shop", "web", v1alpha1.RuntimeNodeJS),
	}
	for i := range replicas {
		pod := build.Pod("shop", fmt.Sprintf("web-abc-%d", i)).OwnedBy(d.set, "apps/v1", "ReplicaSet").On("node-1").
			Label("pod-template-hash", "abc").Container("app", build.Limit("256Mi"), build.Started(start)).Obj()
		pod.UID = types.UID(pod.Name)
		d.pods = append(d.pods, pod)
		objects = append(objects, pod)
	}
	d.store = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(
		&v1alpha1.MemoryCheckpoint{}, &v1alpha1.MemoryRecommendation{},
	).Build()
	d.start()
	return d
}

// start begins with a memfit that knows nothing, as a new leader does.
func (d *deletion) start() {
	api := interceptor.NewClient(d.store, interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
	) error {
		d.apiReads++
		return c.Get(ctx, key, obj, opts...)
	}})
	resolver := policy.New(d.store, api)
	if err := resolver.Rebuild(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	box := inbox.NewInbox()
	d.memfit = memfit{
		feed: &PodSource{Resolver: resolver, Inbox: box},
		reconciler: &Reconciler{
			Client: d.store, APIReader: api, Resolver: resolver, Inbox: box,
			Metrics: NewMetrics(prometheus.NewRegistry()), Clock: clocktesting.NewFakePassiveClock(start),
			Settings: Settings{CheckpointEvery: DefaultCheckpointEvery},
			Problems: &policy.Problems{}, Sources: Sources{Pods: podsOf{d.store}},
			Recorder: &recorder{clock: clocktesting.NewFakePassiveClock(start), names: map[string]bool{}},
		},
	}
	for _, pod := range d.pods {
		d.feed.seen(d.t.Context(), pod)
	}
	d.settle()
}

func (d *deletion) web() memory.WorkloadRef {
	return memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
}

// settle reconciles every workload with unread events until none is left, as the queue would.
func (d *deletion) settle() {
	d.t.Helper()
	for range 5 {
		for _, ref := range d.feed.Inbox.Workloads() {
			events, _ := d.feed.Inbox.Pending(ref)
			if events.Empty() && !events.Requested {
				continue
			}
			d.reconciles++
			if _, err := d.reconciler.Reconcile(d.t.Context(), ref); err != nil {
				d.t.Fatalf("reconciling %s: %v", ref, err)
			}
		}
	}
}

// delete removes the Deployment and its ReplicaSet, as `kubectl delete deployment` and the garbage collector do before
// any pod ends.
func (d *deletion) delete(watched bool) {
	d.t.Helper()
	for _, obj := range []client.Object{d.deployment, d.set} {
		if err := d.store.Delete(d.t.Context(), obj); err != nil {
			d.t.Fatal(err)
		}
	}
	if watched {
		kind := appsv1.SchemeGroupVersion.WithKind
		d.feed.vanished(kind("Deployment"), d.deployment)
		d.feed.vanished(kind("ReplicaSet"), d.set)
		d.settle()
	}
}

// end delivers what the kubelet writes while a pod ends, and its deletion, one pod after the other.
func (d *deletion) end() {
	for step := range 3 {
		for _, pod := range d.pods {
			pod.ResourceVersion = fmt.Sprint(1000 + step)
			pod.Status.ContainerStatuses[0].Ready = false
			pod.Status.ContainerStatuses[0].RestartCount = int32(step)
			d.feed.seen(d.t.Context(), pod.DeepCopy())
			d.settle()
		}
	}
	for _, pod := range d.pods {
		if err := d.store.Delete(d.t.Context(), pod.DeepCopy()); err != nil {
			d.t.Fatal(err)
		}
		d.feed.gone(d.t.Context(), pod)
		d.settle()
	}
}

// TestAPIReadsForADeletedDeploymentAreBounded: owners leave the cache before their pods end. In the field, a Deployment
// of 20 caused 317 reads that were answered with 404 when it was ungoverned, and 510 when it was governed.
func TestAPIReadsForADeletedDeploymentAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations []string
		restart     bool // the leader changes while the pods end
		most        int
	}{
		"ungoverned":                 {nil, false, 0},
		"governed":                   {[]string{v1alpha1.ProfileAnnotation, "web"}, false, 6},
		"ungoverned, another leader": {nil, true, 2},
		"governed, another leader":   {[]string{v1alpha1.ProfileAnnotation, "web"}, true, 8},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDeletion(t, tc.annotations...)
			d.apiReads, d.reconciles = 0, 0
			d.delete(!tc.restart)
			if tc.restart {
				d.start()
			}
			d.end()
			if d.apiReads > tc.most {
				t.Errorf("%d reads of the API server in %d reconciles for %d pods, want at most %d", d.apiReads, d.reconciles,
					replicas, tc.most)
			}
			if left := d.feed.Inbox.Workloads(); len(left) > 0 {
				t.Errorf("the inbox still holds %v", left)
			}
		})
	}
}

// TestEventsOfUngovernedPodsAreNoReasonForAReconcile: their number grows with the pods, and so does the cost of each.
func TestEventsOfUngovernedPodsAreNoReasonForAReconcile(t *testing.T) {
	d := newDeletion(t)
	d.reconciles = 0
	d.end()
	if d.reconciles > 0 {
		t.Errorf("%d reconciles of a workload that no profile governs, want none", d.reconciles)
	}

	d = newDeletion(t)
	d.reconciles = 0
	d.pods[3].Annotations = map[string]string{v1alpha1.ProfileAnnotation: "web"}
	if err := d.store.Update(t.Context(), d.pods[3]); err != nil {
		t.Fatal(err)
	}
	d.feed.seen(t.Context(), d.pods[3].DeepCopy())
	d.settle()
	if d.reconciles == 0 {
		t.Error("a pod that asks for a profile was ignored")
	}
	if nodes := d.feed.Inbox.GovernedNodes(); nodes["node-1"] != 1 {
		t.Errorf("governed pods by node: %v, want the one", nodes)
	}
}

// TestAKillInTheLastPodOfADeletedWorkloadKeepsItsProfile: it came from the Deployment's annotation, which is gone.
func TestAKillInTheLastPodOfADeletedWorkloadKeepsItsProfile(t *testing.T) {
	d := newDeletion(t, v1alpha1.ProfileAnnotation, "web")
	d.delete(true)
	last := d.pods[0].DeepCopy()
	d.feed.gone(t.Context(), last)
	events, _ := d.feed.Inbox.Pending(d.web())
	if events.Profile == nil || events.Profile.Ref.Name != "web" {
		t.Errorf("the profile of the deleted pod is %v, want web", events.Profile)
	}
	if len(events.Departed) != 1 || events.Departed[0].Owner != "deployment" {
		t.Errorf("departed: %v, want the pod with its Deployment's UID", events.Departed)
	}
}

// TestAPodMovesWithItsController: pods are orphaned and adopted while they run.
func TestAPodMovesWithItsController(t *testing.T) {
	d := newDeletion(t)
	set := d.set.DeepCopy()
	set.OwnerReferences = nil
	if err := d.store.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	d.feed.ownerChanged(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), d.set, set)
	d.settle()
	orphaned := d.web()
	orphaned.Kind, orphaned.Name = "ReplicaSet", "web-abc"
	for _, pod := range d.pods {
		if ref, _ := d.feed.Inbox.Workload(pod.UID); ref != orphaned {
			t.Fatalf("pod %s belongs to %s, want %s", pod.Name, ref, orphaned)
		}
	}

	alone := d.pods[0].DeepCopy()
	alone.OwnerReferences = nil
	d.feed.handler(t.Context()).OnUpdate(d.pods[0], alone)
	if ref, _ := d.feed.Inbox.Workload(alone.UID); ref.Kind != "Pod" || ref.Name != alone.Name {
		t.Errorf("an orphaned pod belongs to %s, want itself", ref)
	}
	d.set.ResourceVersion = set.ResourceVersion
	if err := d.store.Update(t.Context(), d.set); err != nil {
		t.Fatal(err)
	}
	d.feed.ownerChanged(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), set, d.set)
	d.settle()
	if ref, _ := d.feed.Inbox.Workload(d.pods[1].UID); ref != d.web() {
		t.Errorf("a pod of an adopted ReplicaSet belongs to %s, want %s", ref, d.web())
	}
}

// TestAPodOfTheSameNameIsAnother: after a gap in the watch, the informer reports the replacement of a StatefulSet's pod
// as an update.
func TestAPodOfTheSameNameIsAnother(t *testing.T) {
	d := newDeletion(t)
	next := d.pods[0].DeepCopy()
	next.UID = "next"
	d.feed.handler(t.Context()).OnUpdate(d.pods[0], next)
	if _, known := d.feed.Inbox.Workload(d.pods[0].UID); known {
		t.Error("the pod that was replaced is still in the inbox")
	}
	if ref, known := d.feed.Inbox.Workload("next"); !known || ref != d.web() {
		t.Errorf("its successor belongs to %s (known %t), want %s", ref, known, d.web())
	}
}

// TestAnOwnerThatTheCacheLacksIsReadOnce: the pod of a new workload may arrive before its owner.
func TestAnOwnerThatTheCacheLacksIsReadOnce(t *testing.T) {
	d := newDeletion(t, v1alpha1.ProfileAnnotation, "web")
	lagging := interceptor.NewClient(d.store, interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
	) error {
		if key.Name == d.set.Name || key.Name == d.deployment.Name {
			key.Name = "not-in-the-cache"
		}
		return c.Get(ctx, key, obj, opts...)
	}})
	reads := 0
	api := interceptor.NewClient(d.store, interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
	) error {
		reads++
		return c.Get(ctx, key, obj, opts...)
	}})
	resolver := policy.New(lagging, api)
	if err := resolver.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	feed := &PodSource{Resolver: resolver, Inbox: inbox.NewInbox()}
	feed.seen(t.Context(), d.pods[0])
	if reads != 0 {
		t.Errorf("the pod informer's handler read the API server %d times, want never", reads)
	}
	if ref, _ := feed.Inbox.Workload(d.pods[0].UID); ref != d.web() {
		t.Errorf("the pod belongs to %s, want the best name, %s", ref, d.web())
	}
	resolved, err := resolver.ResolveRemembered(t.Context(), d.pods[0], feed.Inbox.Kept(d.pods[0].UID))
	if err != nil || resolved.Profile == nil || reads != 2 {
		t.Errorf("governed by %v after %d reads (%v), want web after ReplicaSet and Deployment", resolved.Profile, reads, err)
	}
}

// TestAPodThatReplacedAnotherOfItsNameCountsOnce: caches are ahead of the handlers that fill the inbox, by seconds when
// many pods change at once. Until then it has both pods of a StatefulSet under one name.
func TestAPodThatReplacedAnotherOfItsNameCountsOnce(t *testing.T) {
	d := newDeletion(t)
	next := d.pods[0].DeepCopy()
	if err := d.store.Delete(t.Context(), d.pods[0]); err != nil {
		t.Fatal(err)
	}
	next.UID, next.ResourceVersion = "its-successor", ""
	if err := d.store.Create(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first puts the successor into the inbox
		events, keys := d.feed.Inbox.Pending(d.web())
		s, err := d.reconciler.gather(t.Context(), d.web(), events, keys)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Pods) != replicas {
			t.Errorf("%d pods, want %d", len(s.Pods), replicas)
		}
	}
}
