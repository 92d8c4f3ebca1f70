// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package adverse

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
)

var (
	k8s       client.Client
	clientset kubernetes.Interface
)

// after is how long a healthy workload is watched for late failures.
const after = 75 * time.Second

// TestAdverse first runs the workloads that can share a node in parallel, then the others. ADVERSE=failed-before runs
// only those that have failed before.
func TestAdverse(t *testing.T) {
	connect(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go usage.poll(ctx)
	var results table
	for _, alone := range []bool{false, true} {
		t.Run(map[bool]string{false: "together", true: "alone"}[alone], func(t *testing.T) {
			for _, w := range workloads() {
				if w.alone != alone || os.Getenv("ADVERSE") == "failed-before" && !w.failedBefore {
					continue
				}
				for _, mode := range w.modes {
					t.Run(w.name+"/"+string(mode), func(t *testing.T) {
						if !w.alone {
							t.Parallel()
						}
						run(t, &w, mode, &results)
					})
				}
			}
		})
	}
	results.print(t)
}

func connect(t *testing.T) {
	t.Helper()
	config, err := ctrl.GetConfig()
	if err != nil {
		t.Fatalf("no cluster: run make test-adverse, or set KUBECONFIG to a cluster with memfit: %v", err)
	}
	config.QPS, config.Burst = 200, 400
	if err := v1alpha1.AddToScheme(clientgoscheme.Scheme); err != nil {
		t.Fatal(err)
	}
	if k8s, err = client.New(config, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
		t.Fatal(err)
	}
	if clientset, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
}

// run runs one workload in one mode.
func run(t *testing.T, w *workload, mode v1alpha1.SizingMode, results *table) {
	ctx := t.Context()
	s := &trial{workload: w, mode: mode, namespace: begin(t, w, mode), began: time.Now()}
	s.record = newRecord(s.began)
	if w.then == nil {
		s.observe(ctx, t)
	} else {
		w.then(ctx, t, s)
	}
	r := s.record
	failures := append(s.failures, judge(w, mode, r)...)
	results.add(w, mode, r, failures)
	if len(failures) > 0 {
		t.Errorf("%s (%s): %s\nmemfit's messages:\n%s", w.scenario, mode, strings.Join(failures, "; "), r.texts)
		dump(ctx, t, s.namespace)
	}
}

// observe reads the workload's state until it can be judged.
func (s *trial) observe(ctx context.Context, t *testing.T) {
	t.Helper()
	r, mode := s.record, s.mode
	restarts := 0
	for {
		s.read(ctx, t)
		since := time.Since(s.began)
		if r.done(s.workload, since) {
			break
		}
		// In mode OnCreate only new pods get the size: like the workload's owner, the test deletes pods that were killed.
		if mode == onCreate && r.healthyAfter == 0 && restarts < 6 && since > time.Duration(restarts+1)*30*time.Second {
			if r.deletePods(ctx, t, s.namespace) {
				restarts++
			}
		}
		if mode == inPlace {
			r.deleteAsAdvised(ctx, t, s.namespace)
		}
		if mode == recommendOnly && since > 2*time.Minute {
			break
		}
		time.Sleep(2 * time.Second) // each read lists three kinds, for eight workloads on two cores
	}
}

// judge compares the record with the workload's bounds.
func judge(w *workload, mode v1alpha1.SizingMode, r *record) (failures []string) {
	fail := func(format string, args ...any) { failures = append(failures, fmt.Sprintf(format, args...)) }
	if bound := w.bound(); r.requested > bound {
		fail("memfit requested a limit of %s, at most %s allowed", r.requested, bound)
	}
	if w.untouched && r.inSpec > w.limit {
		fail("a pod has a limit of %s, want the unchanged %s", r.inSpec, w.limit)
	}
	if most := max(w.maxOtherLimit, w.limit); r.other > most {
		fail("another container's limit was %s, at most %s allowed", r.other, most)
	}
	if n := len(r.disrupted); n > w.maxDisrupted {
		fail("%d pods were disrupted, at most %d allowed", n, w.maxDisrupted)
	}
	if r.refused != "" {
		fail("a pod could not be created: %s", r.refused)
	}
	reported := strings.Contains(strings.ToLower(r.texts), strings.ToLower(w.wantText))
	if w.wantText != "" && mode != recommendOnly && !reported {
		fail("memfit's messages do not contain %q", w.wantText)
	}
	if w.staysUnhealthy || mode == recommendOnly || w.then != nil {
		return failures
	}
	request := r.request
	if mode == onCreate {
		request = max(request, r.recommended) // running pods keep their sizes
	}
	switch {
	case r.healthyAfter == 0:
		fail("it was not healthy after %s", w.within)
	case r.use == 0 && !r.ended:
		fail("the kubelet reported no use at the end, to compare the request with")
	case request < r.use && !w.untouched:
		fail("request %s does not cover use %s", request, r.use)
	}
	return failures
}

// begin creates the namespace, the profile and the workload, and opts the workload in at its time.
func begin(t *testing.T, w *workload, mode v1alpha1.SizingMode) (namespace string) {
	t.Helper()
	if w.alone {
		awaitFreeNode(t)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "adverse-"}}
	if w.optIn == afterPause {
		ns.Annotations = map[string]string{v1alpha1.PauseAnnotation: "true"}
	}
	create(t, ns)
	t.Cleanup(func() {
		// The test's context has ended. If the deletion fails, the namespace is deleted with the cluster.
		_ = k8s.Delete(context.Background(), ns, client.PropagationPolicy(metav1.DeletePropagationBackground))
	})
	spec := v1alpha1.MemoryProfileSpec{
		Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNative}, Sizing: v1alpha1.SizingSpec{Mode: mode},
	}
	spec.Sizing.Disruption = &v1alpha1.DisruptionSpec{SingleReplica: "Allowed"}
	if w.profile != nil {
		w.profile(&spec)
	}
	create(t, &v1alpha1.MemoryProfile{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: profileName}, Spec: spec})
	time.Sleep(2 * time.Second) // until the webhook knows the profile
	var owner client.Object
	for _, o := range w.objects(ns.Name) {
		if o.GetName() == appName {
			owner = o
			if w.optIn != late {
				optInto(o)
			}
		}
		create(t, o)
	}
	if w.optIn == "" || w.optIn == early {
		return ns.Name
	}
	awaitKills(t, ns.Name, 2)
	if w.optIn == late {
		patch(t, owner, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.ProfileAnnotation, profileName))
		return ns.Name
	}
	time.Sleep(30 * time.Second)
	patch(t, ns, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, v1alpha1.PauseAnnotation))
	return ns.Name
}

// awaitFreeNode waits until earlier workloads are deleted, which until then occupy the node with their requests.
func awaitFreeNode(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		var namespaces corev1.NamespaceList
		if err := k8s.List(t.Context(), &namespaces); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(
			namespaces.Items, func(ns corev1.Namespace) bool { return strings.HasPrefix(ns.Name, "adverse-") },
		) {
			return
		}
	}
	t.Fatal("namespaces of earlier workloads still exist: kubectl get ns | grep adverse-")
}

func optInto(o client.Object) {
	o.SetAnnotations(map[string]string{v1alpha1.ProfileAnnotation: profileName})
}

func create(t *testing.T, o client.Object) {
	t.Helper()
	if err := k8s.Create(t.Context(), o); err != nil {
		t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	}
}

func patch(t *testing.T, o client.Object, text string) {
	t.Helper()
	if err := k8s.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
		t.Fatalf("patching %T %s: %v", o, o.GetName(), err)
	}
}

// awaitKills waits until a pod of the workload has been restarted n times.
func awaitKills(t *testing.T, namespace string, n int32) {
	t.Helper()
	// On a slow node a pod takes two minutes to start while seven others start.
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		var pods corev1.PodList
		if err := k8s.List(
			t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{"app": appName},
		); err != nil {
			t.Fatal(err)
		}
		for i := range pods.Items {
			if s := pods.Items[i].Status.ContainerStatuses; len(s) > 0 && s[0].RestartCount >= n {
				return
			}
		}
	}
	t.Fatalf("the workload in %s was not killed %d times without memfit", namespace, n)
}

// deletePods deletes the pods that were killed, and reports whether it deleted one. It does nothing while a pod is
// terminating, because on a slow node terminating pods fill the quota.
func (r *record) deletePods(ctx context.Context, t *testing.T, namespace string) (deleted bool) {
	t.Helper()
	var pods corev1.PodList
	if err := k8s.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": appName}); err != nil {
		t.Fatal(err)
	}
	terminating := func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }
	if slices.ContainsFunc(pods.Items, terminating) {
		return false
	}
	killed := func(c corev1.ContainerStatus) bool { return c.RestartCount > 0 || c.State.Terminated != nil }
	for i := range pods.Items {
		p := &pods.Items[i]
		owner := metav1.GetControllerOf(p)
		if owner == nil || owner.Kind == "Job" || !slices.ContainsFunc(p.Status.ContainerStatuses, killed) {
			continue
		}
		r.deleted[p.UID], deleted = true, true
		if err := k8s.Delete(ctx, p); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	return deleted
}

// deleteAsAdvised deletes the pod that memfit advises to delete because its kubelet does not apply the size. It first
// waits a minute, in which memfit may still succeed by itself.
func (r *record) deleteAsAdvised(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	_, rest, advised := strings.Cut(r.texts, "kubectl -n "+namespace+" delete pod ")
	if !advised {
		r.advisedPod = ""
		return
	}
	name := strings.Fields(rest)[0]
	if r.advisedPod != name {
		r.advisedPod, r.advisedSince = name, time.Now()
	}
	var pod corev1.Pod
	err := k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &pod)
	if apierrors.IsNotFound(err) || r.deleted[pod.UID] || time.Since(r.advisedSince) < time.Minute {
		return
	}
	if err == nil {
		err = k8s.Delete(ctx, &pod)
	}
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	r.deleted[pod.UID] = true
	r.deletedAsAdvised++
}

// dump logs the namespace's pods and Events for debugging.
func dump(ctx context.Context, t *testing.T, namespace string) {
	var pods corev1.PodList
	var events corev1.EventList
	var deployments appsv1.DeploymentList
	for _, l := range []client.ObjectList{&pods, &events, &deployments} {
		if err := k8s.List(ctx, l, client.InNamespace(namespace)); err != nil {
			t.Log(err)
		}
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		for _, c := range p.Spec.Containers {
			t.Logf(
				"pod %s container %s: limits %v requests %v", p.Name, c.Name, c.Resources.Limits.Memory(),
				c.Resources.Requests.Memory(),
			)
		}
		for _, s := range p.Status.ContainerStatuses {
			t.Logf(
				"pod %s container %s: %d restarts, last %+v, resources %+v", p.Name, s.Name, s.RestartCount,
				s.LastTerminationState.Terminated, s.Resources,
			)
		}
	}
	for i := range events.Items {
		e := &events.Items[i]
		t.Logf("%s %s %s: %s", e.CreationTimestamp.Format(time.TimeOnly), e.InvolvedObject.Kind, e.Reason, e.Message)
	}
}

// table is the table that is printed at the end, for the docs: a row for each workload with the results of each mode.
type table struct {
	mu   sync.Mutex
	rows map[string][]string
	head map[string]string
}

func (s *table) add(w *workload, mode v1alpha1.SizingMode, r *record, failures []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows == nil {
		s.rows, s.head = map[string][]string{}, map[string]string{}
	}
	result := fmt.Sprintf("%s %s", mode, r.requested)
	if r.healthyAfter > 0 {
		result += " (" + r.healthyAfter.Round(time.Second).String() + ")"
	}
	if n := len(r.disrupted); n > 0 {
		result += ", " + format.Count(int64(n), "pod") + " disrupted"
	}
	if r.deletedAsAdvised > 0 {
		result += ", " + format.Count(int64(r.deletedAsAdvised), "pod") + " deleted as memfit asked"
	}
	if len(failures) > 0 {
		result += " **failed**"
	}
	result = strings.Join(append([]string{result}, r.notes...), ", ")
	s.head[w.name] = fmt.Sprintf("| %s | %s | %s | ", w.name, w.scenario, w.bound())
	s.rows[w.name] = append(s.rows[w.name], result)
}

func (s *table) print(t *testing.T) {
	text := "| workload | what is odd about it | bound | highest limit asked for, by sizing.mode (ready after) |\n" +
		"|---|---|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(s.rows)) {
		slices.Sort(s.rows[name])
		text += s.head[name] + strings.Join(s.rows[name], "; ") + " |\n"
	}
	fmt.Print("\n", text)
	if path := os.Getenv("ADVERSE_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	}
}
