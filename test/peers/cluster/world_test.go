// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	vpav1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
	"github.com/memfit/memfit/test/podplan"
)

// writers create and replace objects concurrently.
const writers = 16

// system is memfit's own namespace.
const system = "memfit-system"

// world is the simulated cluster.
type world struct {
	config   *rest.Config
	client   client.WithWatch
	scheme   *runtime.Scheme
	etcd     string // URL
	profiles []v1alpha1.ClusterMemoryProfile
	nodes    []*node
	port     int // of the kubelets, the same on every node's address
	pods     int
	// namespaces is the number of namespaces of workloads.
	namespaces int
	// workloads are written by [world.store].
	workloads []workload
	// metrics and probes are addresses of memfit's endpoints.
	metrics, probes string
	// environment is added to the environment of programs; before is prepended to their commands.
	environment, before []string
}

// node is a node with its own address on the loopback interface.
type node struct {
	name, address string

	mu   sync.Mutex
	pods []*corev1.Pod
	// readAt is when its summary was last read; gap is the longest time between two readings.
	readAt time.Time
	gap    time.Duration
}

// runningPods returns the node's pods.
func (n *node) runningPods() []*corev1.Pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.pods)
}

// podsForSummary returns the node's pods, and records the time since the last summary.
func (n *node) podsForSummary(now time.Time) []*corev1.Pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.readAt.IsZero() {
		n.gap = max(n.gap, now.Sub(n.readAt))
	}
	n.readAt = now
	return slices.Clone(n.pods)
}

// resetGap restarts the measurement of the longest gap.
func (n *node) resetGap(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.readAt, n.gap = now, 0
}

// longestGap returns the longest time between two readings of the node; 0: the node has no pods.
func (n *node) longestGap(now time.Time) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.pods) == 0 {
		return 0
	}
	return max(n.gap, now.Sub(n.readAt))
}

// start starts etcd and a kube-apiserver.
func start(t *testing.T, o options) *world {
	t.Helper()
	logf.SetLogger(logr.Discard())
	progress("starting etcd and kube-apiserver")
	var etcd *envtest.Environment
	config := expect.APIServer(t, func(env *envtest.Environment) {
		etcd, env.ControlPlaneStartTimeout, env.ControlPlaneStopTimeout = env, 2*time.Minute, 2*time.Minute
		if o.vpaCRDs != "" {
			env.CRDDirectoryPaths = append(env.CRDDirectoryPaths, o.vpaCRDs)
		}
	})
	config.QPS = -1
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), v1alpha1.AddToScheme(s), vpav1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	return &world{config: config, client: c, scheme: s, etcd: etcd.ControlPlane.Etcd.URL.String(), namespaces: 20}
}

// simulate starts a cluster whose pods run, with kubelets that answer for its nodes.
func simulate(t *testing.T, o options) *world {
	t.Helper()
	w := start(t, o)
	if err := w.store(deadline(t), o); err != nil {
		t.Fatalf("filling the cluster: %v", err)
	}
	w.serveKubelets(t)
	return w
}

// createFixtures creates namespaces, memfit's own with the account for kubelets, and profiles; and names the nodes.
func (w *world) createFixtures(ctx context.Context, o options) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	if _, err := fmt.Sscanf(address, "127.0.0.1:%d", &w.port); err != nil {
		return err
	}
	for i := range w.namespaces + 1 {
		name := system
		if i < w.namespaces {
			name = w.namespace(i)
		}
		if err := w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	reader := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "memfit-usage-reader"}}
	if err := w.client.Create(ctx, reader); err != nil {
		return err
	}
	for name, kind := range map[string]v1alpha1.RuntimeType{
		"node": v1alpha1.RuntimeNodeJS, "java": v1alpha1.RuntimeJVM, "go": v1alpha1.RuntimeGo,
		"native": v1alpha1.RuntimeNative,
	} {
		p := v1alpha1.ClusterMemoryProfile{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.Spec.Runtime.Type = kind
		if err := w.client.Create(ctx, &p); err != nil {
			return err
		}
		w.profiles = append(w.profiles, p)
	}
	for i := range o.nodes {
		w.nodes = append(
			w.nodes, &node{name: fmt.Sprintf("node-%05d", i), address: fmt.Sprintf("127.77.%d.%d", i/250, i%250+1)},
		)
	}
	return nil
}

func (w *world) namespace(i int) string { return fmt.Sprintf("team-%d", i%w.namespaces) }

// node returns a node's object.
func (w *world) node(n *node) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: n.address}, {Type: corev1.NodeHostName, Address: n.name},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(w.port)}},
		},
	}
}

// The hashes of workloads' first templates, and of those after a rollout.
const (
	firstHash = "6d4cf56db6"
	nextHash  = "7b9f8d5c44"
)

// createAutoscalers creates a VerticalPodAutoscaler for each workload.
func (w *world) createAutoscalers(ctx context.Context) error {
	off := vpav1.UpdateModeOff
	jobs, ctx := errgroup.WithContext(ctx)
	jobs.SetLimit(writers)
	for i := range w.workloads {
		of := w.workloads[i].deployment
		jobs.Go(func() error {
			return w.client.Create(ctx, &vpav1.VerticalPodAutoscaler{
				ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name},
				Spec: vpav1.VerticalPodAutoscalerSpec{
					TargetRef: &autoscalingv1.CrossVersionObjectReference{
						APIVersion: "apps/v1", Kind: "Deployment", Name: of.Name,
					},
					UpdatePolicy: &vpav1.PodUpdatePolicy{UpdateMode: &off},
				},
			})
		})
	}
	return jobs.Wait()
}

// deployment returns the Deployment of workload i.
func (w *world) deployment(i, replicas int) *appsv1.Deployment {
	name := fmt.Sprintf("web-%05d", i)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace(i), Name: name,
			Annotations: map[string]string{v1alpha1.ProfileAnnotation: w.governs(i).Name},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template(name, firstHash, limitOf(i)),
		},
	}
}

func (w *world) governs(i int) *v1alpha1.ClusterMemoryProfile { return &w.profiles[i%len(w.profiles)] }

func template(name, hash string, limit memory.Bytes) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name, "pod-template-hash": hash}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "app", Image: "registry.example/app:1", Resources: sized(limit)}},
		},
	}
}

// replicaSet returns a ReplicaSet of a Deployment, whose containers have a limit.
func replicaSet(d *appsv1.Deployment, hash string, limit memory.Bytes) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name + "-" + hash,
			OwnerReferences: []metav1.OwnerReference{build.ControllerRef(d, "apps/v1", "Deployment")},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: template(d.Name, hash, limit),
		},
	}
}

// pod returns the model of workload i's pods, with the changes of memfit's webhook, which does not run here.
func (w *world) pod(i int, set *appsv1.ReplicaSet) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = set.Namespace, set.Name
	pod.OwnerReferences = []metav1.OwnerReference{build.ControllerRef(set, "apps/v1", "ReplicaSet")}
	governs := w.governs(i)
	by := &profile.Profile{
		Ref: v1alpha1.ProfileReference{Kind: profile.KindCluster, Name: governs.Name}, Generation: governs.Generation,
		Spec: &governs.Spec.MemoryProfileSpec,
	}
	podplan.Apply(pod, inject.MakePlan(inject.Input{Pod: pod, Profile: by}))
	return pod
}

// replica returns the nth copy of a model pod, on a node.
func replica(like *corev1.Pod, n int, on *node) *corev1.Pod {
	pod := like.DeepCopy()
	pod.Name, pod.Spec.NodeName = replicaName(like, n), on.name
	return pod
}

func replicaName(like *corev1.Pod, n int) string { return fmt.Sprintf("%s-%05d", like.Name, n) }

// limitOf returns the limit of workload i: 128Mi to 2Gi.
func limitOf(i int) memory.Bytes { return memory.Bytes(128+i*37%1920) * memory.MiB }

func sized(limit memory.Bytes) corev1.ResourceRequirements {
	list := corev1.ResourceList{
		corev1.ResourceMemory: *resource.NewQuantity(int64(limit), resource.BinarySI),
		corev1.ResourceCPU:    resource.MustParse("100m"),
	}
	return corev1.ResourceRequirements{Limits: list, Requests: list}
}

// use returns the use of a pod's container: half of its limit, varying by a tenth within an hour.
func use(pod *corev1.Pod, at time.Time) memory.Bytes {
	limit := memory.FromQuantity(*pod.Spec.Containers[0].Resources.Limits.Memory())
	phase := float64(pod.UID[0]) + 2*math.Pi*float64(at.Unix()%3600)/3600
	return memory.Bytes(float64(limit) * (0.5 + 0.05*math.Sin(phase)))
}
