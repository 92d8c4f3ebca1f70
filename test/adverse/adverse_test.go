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

// after is how long a workload is watched when it is well: what comes late is harm as well.
const after = 75 * time.Second

// TestAdverse runs the suite: those that can share a node side by side, then the others. ADVERSE=failed-before runs
// what has failed before.
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

// run is one workload in one mode.
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
		t.Errorf("%s (%s): %s\nits messages:\n%s", w.story, mode, strings.Join(failures, "; "), r.texts)
		dump(ctx, t, s.namespace)
	}
}

// observe records the workload until it is time to judge it.
func (s *trial) observe(ctx context.Context, t *testing.T) {
	t.Helper()
	r, mode := s.record, s.mode
	restarts := 0
	for {
		s.look(ctx, t)
		since := time.Since(s.began)
		if r.seenEnough(s.workload, since) {
			break
		}
		// New pods get the size, and no one but their owner makes new ones: as one would, he restarts what keeps dying.
		if mode == onCreate && r.wellAfter == 0 && restarts < 6 && since > time.Duration(restarts+1)*30*time.Second {
			if r.deletePods(ctx, t, s.namespace) {
				restarts++
			}
		}
		if mode == inPlace {
			r.deleteAsTold(ctx, t, s.namespace)
		}
		if mode == recommendOnly && since > 2*time.Minute {
			break
		}
		time.Sleep(2 * time.Second) // each look is three lists, and eight workloads are looked at on two cores
	}
}

// judge compares what was seen with what the workload allows.
func judge(w *workload, mode v1alpha1.SizingMode, r *record) (failures []string) {
	fail := func(format string, args ...any) { failures = append(failures, fmt.Sprintf(format, args...)) }
	if bound := w.bound(); r.asked > bound {
		fail("a limit of %s was asked for, at most %s may be", r.asked, bound)
	}
	if w.untouched && r.given > w.limit {
		fail("a pod was given a limit of %s, and was to keep %s", r.given, w.limit)
	}
	if most := max(w.otherAtMost, w.limit); r.other > most {
		fail("another container was given %s, at most %s may be", r.other, most)
	}
	if n := len(r.disturbed); n > w.disturbedAtMost {
		fail("%d pods were disturbed, at most %d may be", n, w.disturbedAtMost)
	}
	if r.refused != "" {
		fail("a pod could not be created: %s", r.refused)
	}
	if w.says != "" && mode != recommendOnly && !strings.Contains(strings.ToLower(r.texts), strings.ToLower(w.says)) {
		fail("nothing says %q", w.says)
	}
	if w.staysIll || mode == recommendOnly || w.then != nil {
		return failures
	}
	request := r.request
	if mode == onCreate {
		request = max(request, r.recommended) // running pods keep what they were created with
	}
	switch {
	case r.wellAfter == 0:
		fail("it was not well after %s", w.within)
	case r.use == 0 && !r.ended:
		fail("the kubelet did not say at the end what it uses, so nothing says that its request covers that")
	case request < r.use && !w.untouched:
		fail("request %s does not cover use %s", request, r.use)
	}
	return failures
}

// begin makes the namespace, the profile and the workload, and waits until the workload has come under memfit in its
// way.
func begin(t *testing.T, w *workload, mode v1alpha1.SizingMode) (namespace string) {
	t.Helper()
	if w.alone {
		awaitRoom(t)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "adverse-"}}
	if w.optIn == afterPause {
		ns.Annotations = map[string]string{v1alpha1.PauseAnnotation: "true"}
	}
	create(t, ns)
	t.Cleanup(func() {
		// The test's own context is over, and what is left goes with the cluster.
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
	time.Sleep(2 * time.Second) // a pod that is created before the webhooks have heard of its profile is admitted as it is
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

// awaitRoom waits until the pods of earlier workloads are gone: what they request is not free yet.
func awaitRoom(t *testing.T) {
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
	t.Fatal("namespaces of earlier workloads are still there: kubectl get ns | grep adverse-")
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

// awaitKills waits until the workload's pod has been restarted so often.
func awaitKills(t *testing.T, namespace string, n int32) {
	t.Helper()
	// On a slow node a pod takes two minutes to start while seven others do.
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
	t.Fatalf("the workload in %s was to be killed %d times without memfit and was not", namespace, n)
}

// deletePods is a restart by the owner of the pods that have died, and reports whether there was one. He waits for his
// last restart to be over: on a slow node, pods that still end would fill a quota without any doing of memfit's.
func (r *record) deletePods(ctx context.Context, t *testing.T, namespace string) (deleted bool) {
	t.Helper()
	var pods corev1.PodList
	if err := k8s.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": appName}); err != nil {
		t.Fatal(err)
	}
	ends := func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }
	if slices.ContainsFunc(pods.Items, ends) {
		return false
	}
	died := func(c corev1.ContainerStatus) bool { return c.RestartCount > 0 || c.State.Terminated != nil }
	for i := range pods.Items {
		p := &pods.Items[i]
		owner := metav1.GetControllerOf(p)
		if owner == nil || owner.Kind == "Job" || !slices.ContainsFunc(p.Status.ContainerStatuses, died) {
			continue
		}
		r.deleted[p.UID], deleted = true, true
		if err := k8s.Delete(ctx, p); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	return deleted
}

// deleteAsTold deletes the pod that memfit reports is to be deleted, because its kubelet does not get it its size. It
// waits a minute with that, in which memfit may yet do without.
func (r *record) deleteAsTold(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	_, rest, told := strings.Cut(r.texts, "kubectl -n "+namespace+" delete pod ")
	if !told {
		r.toldOf = ""
		return
	}
	name := strings.Fields(rest)[0]
	if r.toldOf != name {
		r.toldOf, r.toldSince = name, time.Now()
	}
	var pod corev1.Pod
	err := k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &pod)
	if apierrors.IsNotFound(err) || r.deleted[pod.UID] || time.Since(r.toldSince) < time.Minute {
		return
	}
	if err == nil {
		err = k8s.Delete(ctx, &pod)
	}
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	r.deleted[pod.UID] = true
	r.told++
}

// dump is what a person would ask for first.
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

// table is what is printed at the end, and kept in the docs: a row for each workload, with what each mode did.
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
	result := fmt.Sprintf("%s %s", mode, r.asked)
	if r.wellAfter > 0 {
		result += " (" + r.wellAfter.Round(time.Second).String() + ")"
	}
	if n := len(r.disturbed); n > 0 {
		result += ", " + format.Count(int64(n), "pod") + " disturbed"
	}
	if r.told > 0 {
		result += ", " + format.Count(int64(r.told), "pod") + " deleted as memfit asked"
	}
	if len(failures) > 0 {
		result += " **failed**"
	}
	result = strings.Join(append([]string{result}, r.notes...), ", ")
	s.head[w.name] = fmt.Sprintf("| %s | %s | %s | ", w.name, w.story, w.bound())
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
