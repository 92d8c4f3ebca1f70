// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	workloadctl "github.com/memfit/memfit/controllers/workload"
	"github.com/memfit/memfit/internal/inbox"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/podplan"
)

// The defaults of memfit's --usage-interval and --kill-counters-interval.
const (
	usageInterval        = 15 * time.Second
	killCountersInterval = time.Minute
)

// The history of a container before the measurement: eight days of hourly samples, of which the last half hour has
// samples every usageInterval.
const (
	lookBack   = 8 * 24 * time.Hour
	recentSpan = 30 * time.Minute
)

// historyTimes returns the times of these samples, oldest first; the last is just before the epoch.
func historyTimes() (all []time.Time) {
	for at := epoch.Add(-lookBack); at.Before(epoch.Add(-recentSpan)); at = at.Add(time.Hour) {
		all = append(all, at)
	}
	for at := epoch.Add(-recentSpan); at.Before(epoch); at = at.Add(usageInterval) {
		all = append(all, at)
	}
	return all
}

// runtimesOf are the runtimes of the profiles, which the workloads use in turn.
var runtimesOf = []v1alpha1.RuntimeType{
	v1alpha1.RuntimeNodeJS, v1alpha1.RuntimeJVM, v1alpha1.RuntimeGo, v1alpha1.RuntimeNative,
}

// operator is memfit's workload reconciler with its inputs, but without a network.
type operator struct {
	maps      *maps
	clock     *clocktesting.FakePassiveClock
	inbox     *inbox.Inbox
	reconcile *workloadctl.Reconciler
	workloads []*workload
	samples   []memory.Sample
	counters  []memory.KillCounter
}

// workload is a Deployment with pods of one container each.
type workload struct {
	ref  memory.WorkloadRef
	like *container
	pods []*corev1.Pod

	recommended bool // it has a MemoryRecommendation
}

// newOperator returns an operator that has not observed its workloads yet.
func newOperator(t *testing.T, workloads int) *operator {
	t.Helper()
	o := &operator{
		maps: &maps{
			pods: map[client.ObjectKey]*corev1.Pod{}, owners: map[client.ObjectKey]*metav1.PartialObjectMetadata{},
			workloads: map[client.ObjectKey]*workload{},
		},
		clock: clocktesting.NewFakePassiveClock(epoch.Add(-lookBack)), inbox: inbox.NewInbox(),
	}
	for i, runtime := range runtimesOf {
		p := v1alpha1.ClusterMemoryProfile{ObjectMeta: metav1.ObjectMeta{Name: string(runtimesOf[i])}}
		p.Spec.Runtime.Type = runtime
		o.maps.profiles = append(o.maps.profiles, p)
	}
	for i := range workloads {
		w := o.add(t, i)
		o.workloads = append(o.workloads, w)
		o.maps.workloads[client.ObjectKey{Namespace: w.ref.Namespace, Name: policy.RecordName(w.ref)}] = w
	}
	resolver := policy.New(o.maps, nil)
	if err := resolver.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.reconcile = &workloadctl.Reconciler{
		Client: o.maps, APIReader: o.maps, Inbox: o.inbox, Resolver: resolver,
		Sources: workloadctl.Sources{Pods: o.maps},
		Settings: workloadctl.Settings{
			CheckpointEvery: workloadctl.DefaultCheckpointEvery, StepInterval: 4 * usageInterval,
		},
		Problems: &policy.Problems{},
		Recorder: o.maps, Metrics: workloadctl.NewMetrics(prometheus.NewRegistry()), Clock: o.clock,
	}
	return o
}

// add adds the objects of workload number i to memfit's caches.
func (o *operator) add(t *testing.T, i int) *workload {
	t.Helper()
	w := &workload{
		ref: memory.WorkloadRef{
			APIVersion: "apps/v1", Kind: "Deployment", Namespace: fmt.Sprintf("team-%d", i%100), Name: name(i),
		},
		like: newContainer(i),
	}
	selected := &o.maps.profiles[i%len(runtimesOf)]
	deployment := metadata("apps/v1", "Deployment", w.ref.Namespace, w.ref.Name, nil)
	deployment.Annotations = map[string]string{v1alpha1.ProfileAnnotation: selected.Name}
	set := metadata("apps/v1", "ReplicaSet", w.ref.Namespace, w.ref.Name+"-6d4cf56db6", deployment)
	o.maps.owners[client.ObjectKeyFromObject(deployment)], o.maps.owners[client.ObjectKeyFromObject(set)] = deployment, set
	for n := range replicas {
		pod := newPod(t, set, n, w.like.limit, selected)
		w.pods = append(w.pods, pod)
		o.maps.pods[client.ObjectKeyFromObject(pod)] = pod
	}
	return w
}

func metadata(
	apiVersion, kind, namespace, name string, owner *metav1.PartialObjectMetadata,
) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(kind + namespace + name)},
	}
	if owner != nil {
		m.OwnerReferences = []metav1.OwnerReference{build.ControllerRef(owner, owner.APIVersion, owner.Kind)}
	}
	return m
}

// newPod returns a running pod after memfit's webhook, as memfit's cache stores it.
func newPod(
	t *testing.T, set *metav1.PartialObjectMetadata, n int, limit memory.Bytes, selected *v1alpha1.ClusterMemoryProfile,
) *corev1.Pod {
	t.Helper()
	size := corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(int64(limit), resource.BinarySI)}
	podName := fmt.Sprintf("%s-%05d", set.Name, n)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: podName, UID: types.UID(podName + "-0123-4567-89abcdef"),
			CreationTimestamp: metav1.NewTime(epoch.Add(-lookBack)),
			OwnerReferences:   []metav1.OwnerReference{build.ControllerRef(set, set.APIVersion, set.Kind)},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1",
			Containers: []corev1.Container{
				{Name: "app", Command: []string{"/app"}, Resources: corev1.ResourceRequirements{Limits: size, Requests: size}},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", ContainerID: "containerd://" + podName,
				State: corev1.ContainerState{
					Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(epoch.Add(-lookBack))},
				},
			}},
		},
	}
	podplan.Apply(pod, inject.MakePlan(
		inject.Input{
			Pod: pod,
			Profile: &profile.Profile{
				Ref:  v1alpha1.ProfileReference{Kind: profile.KindCluster, Name: selected.Name},
				Spec: &selected.Spec.MemoryProfileSpec,
			},
		},
	))
	slim, err := informers.SlimPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	return slim.(*corev1.Pod)
}

// observeAll adds all pods and reconciles each workload once, so that memfit knows where to measure.
func (o *operator) observeAll(t *testing.T) {
	t.Helper()
	for _, w := range o.workloads {
		for _, pod := range w.pods {
			o.inbox.AddPod(pod.UID, client.ObjectKeyFromObject(pod), w.ref)
			o.inbox.Observe(w.ref, oom.Observe(pod))
		}
	}
	o.reconcileAll(t)
}

// reconcileAll reconciles every workload.
func (o *operator) reconcileAll(t *testing.T) {
	t.Helper()
	for _, w := range o.workloads {
		o.reconcileOne(t, w)
	}
}

func (o *operator) reconcileOne(t *testing.T, w *workload) {
	t.Helper()
	if _, err := o.reconcile.Reconcile(t.Context(), w.ref); err != nil {
		t.Fatalf("reconciling %s: %v", w.ref, err)
	}
}

// addHistory delivers the history of every workload, one workload after the other.
func (o *operator) addHistory(t *testing.T) {
	t.Helper()
	times := historyTimes()
	for _, w := range o.workloads {
		pending := 0
		for i, at := range times {
			o.measure(w, at)
			if pending += len(w.pods); pending >= 2000 || i == len(times)-1 { // the inbox holds 4096
				o.clock.SetTime(at)
				o.reconcileOne(t, w)
				pending = 0
			}
		}
	}
	o.clock.SetTime(epoch)
}

// measure delivers one sample of every pod of a workload, like the usage collector, and a kill, like the pod informer.
func (o *operator) measure(w *workload, at time.Time) {
	started := w.like.started
	rss, killed := w.like.use(at)
	o.samples = o.samples[:0]
	for n, pod := range w.pods {
		replica := rss - rss*memory.Bytes(n%5)/100 // replicas differ a little
		o.samples = append(o.samples, memory.Sample{
			Container: memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: "app"},
			Time:      at, Started: started, RSS: replica, HasRSS: true, Exact: true, WorkingSet: replica + 8*memory.MiB,
		})
	}
	o.inbox.Sampled("node-1", o.samples, "kubelet")
	if killed {
		o.kill(w, at)
	}
}

// kill OOM-kills and restarts the first pod's container. The other containers start over as well, without a kill.
func (o *operator) kill(w *workload, at time.Time) {
	pod := w.pods[0].DeepCopy() // cached objects must not change
	status := &pod.Status.ContainerStatuses[0]
	status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
		Reason: "OOMKilled", ExitCode: 137, StartedAt: status.State.Running.StartedAt, FinishedAt: metav1.NewTime(at),
		ContainerID: status.ContainerID,
	}
	status.RestartCount++
	status.ContainerID = fmt.Sprintf("containerd://%s-%d", pod.Name, status.RestartCount)
	status.State.Running.StartedAt = metav1.NewTime(at)
	w.pods[0], o.maps.pods[client.ObjectKeyFromObject(pod)] = pod, pod
	o.inbox.Observe(w.ref, oom.Observe(pod))
}

// count delivers the kernel's kill counters of every pod of a workload, which are zero.
func (o *operator) count(w *workload, at time.Time) {
	o.counters = o.counters[:0]
	for _, pod := range w.pods {
		o.counters = append(o.counters, memory.KillCounter{
			Container:   memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: "app"},
			ContainerID: pod.Status.ContainerStatuses[0].ContainerID, Time: at,
		})
	}
	o.inbox.Counted("node-1", o.counters)
}

// run lets time pass from the epoch: every usageInterval, it samples all containers and reconciles all workloads.
func (o *operator) run(t *testing.T, over time.Duration) {
	t.Helper()
	for at := epoch; at.Before(epoch.Add(over)); at = at.Add(usageInterval) {
		o.clock.SetTime(at)
		for _, w := range o.workloads {
			o.measure(w, at)
			if at.Equal(at.Truncate(killCountersInterval)) {
				o.count(w, at)
			}
		}
		o.reconcileAll(t)
	}
}
