// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
)

// put is one key of a transaction of etcd's JSON gateway, which encodes bytes in base64, as encoding/json does.
type put struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// maxPuts bounds the puts of a transaction of etcd (--max-txn-ops).
const maxPuts = 128

// writer writes objects directly to etcd, encoded as by the API server. Through the API server, 100,000 running pods
// would take 200,000 requests.
type writer struct {
	*world
	ctx  context.Context
	jobs *errgroup.Group
	left []put
}

func (w *world) writer(ctx context.Context) *writer {
	jobs, ctx := errgroup.WithContext(ctx)
	jobs.SetLimit(4)
	return &writer{world: w, ctx: ctx, jobs: jobs}
}

// put writes an object, with the metadata that the API server sets at creation.
func (w *writer) put(resource string, obj client.Object) error {
	if obj.GetUID() == "" {
		obj.SetUID(uuid.NewUUID())
	}
	obj.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	obj.SetGeneration(1)
	kind, err := apiutil.GVKForObject(obj, w.scheme)
	if err != nil {
		return err
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	// Custom resources are stored as JSON.
	var encoder runtime.Encoder = protobuf.NewSerializer(w.scheme, w.scheme)
	if _, builtIn := obj.(runtime.ProtobufMarshaller); !builtIn {
		encoder = serializer.NewSerializerWithOptions(
			serializer.DefaultMetaFactory, w.scheme, w.scheme, serializer.SerializerOptions{},
		)
	}
	var encoded bytes.Buffer
	if err := encoder.Encode(obj, &encoded); err != nil {
		return fmt.Errorf("encoding a %s: %w", kind.Kind, err)
	}
	key := path.Join("/registry", resource, obj.GetNamespace(), obj.GetName())
	w.left = append(w.left, put{Key: []byte(key), Value: encoded.Bytes()})
	if len(w.left) == maxPuts {
		w.flush()
	}
	return nil
}

// flush sends the buffered puts.
func (w *writer) flush() {
	all := w.left
	w.left = nil
	w.jobs.Go(func() error { return w.transact(all) })
}

// end flushes and waits until everything is written.
func (w *writer) end() error {
	if len(w.left) > 0 {
		w.flush()
	}
	return w.jobs.Wait()
}

func (w *writer) transact(all []put) error {
	type operation struct {
		Put put `json:"requestPut"`
	}
	var body struct {
		Success []operation `json:"success"`
	}
	for _, p := range all {
		body.Success = append(body.Success, operation{p})
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, w.etcd+"/v3/kv/txn", bytes.NewReader(text))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("writing to etcd: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("etcd returned %s: %.300s", resp.Status, answer)
	}
	return err
}

// store writes nodes, and workloads with running pods, to etcd, and records them in w.
func (w *world) store(ctx context.Context, o options) error {
	began := time.Now()
	progress("writing %d nodes and %d running pods of %d Deployments to etcd", o.nodes, o.pods, o.workloads)
	if err := w.createFixtures(ctx, o); err != nil {
		return err
	}
	to := w.writer(ctx)
	for _, n := range w.nodes {
		obj := w.node(n)
		obj.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if err := to.put("minions", obj); err != nil {
			return err
		}
	}
	for i := range o.workloads {
		if err := to.workload(i, o.replicas); err != nil {
			return err
		}
		if done := (i + 1) * o.replicas; done/10_000 > (done-o.replicas)/10_000 {
			progress("%d pods after %s", done, time.Since(began).Round(time.Second))
		}
	}
	if err := to.end(); err != nil {
		return err
	}
	w.pods = o.pods
	progress("written in %s; waiting until the API server has cached all of them", time.Since(began).Round(time.Second))
	pods := w.workloads[len(w.workloads)-1].pods
	return w.waitCached(ctx, pods[len(pods)-1])
}

func (w *writer) workload(i, replicas int) error {
	d := w.deployment(i, replicas)
	if err := w.put("deployments", d); err != nil {
		return err
	}
	set := replicaSet(d, firstHash, limitOf(i))
	if err := w.put("replicasets", set); err != nil {
		return err
	}
	like, of := w.pod(i, set), workload{index: i, deployment: d}
	for n := range replicas {
		on := w.nodes[(i*replicas+n)%len(w.nodes)]
		pod := *like // shares the template's spec
		pod.Name, pod.Spec.NodeName, pod.UID = replicaName(like, n), on.name, uuid.NewUUID()
		setRunning(&pod, time.Now())
		if err := w.put("pods", &pod); err != nil {
			return err
		}
		on.pods = append(on.pods, &pod)
		of.pods = append(of.pods, &pod)
	}
	w.workloads = append(w.workloads, of)
	return nil
}

// setRunning sets the status of a running pod.
func setRunning(pod *corev1.Pod, since time.Time) {
	started := metav1.NewTime(since.Truncate(time.Second))
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &started, QOSClass: corev1.PodQOSGuaranteed,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: started},
		},
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ContainerID: "containerd://" + string(pod.UID), Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
		})
	}
}

// waitCached waits until the API server's watch cache has the last object.
func (w *world) waitCached(ctx context.Context, last client.Object) error {
	cached := &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}}
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := w.client.Get(ctx, client.ObjectKeyFromObject(last), last.DeepCopyObject().(client.Object), cached)
		return err == nil, client.IgnoreNotFound(err)
	})
}

// workload is a Deployment and its pods in etcd.
type workload struct {
	index      int
	deployment *appsv1.Deployment
	pods       []*corev1.Pod
}

// recommendation returns the name of its MemoryRecommendation.
func (o *workload) recommendation() types.NamespacedName {
	d := o.deployment
	of := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: d.Namespace, Name: d.Name}
	return types.NamespacedName{Namespace: d.Namespace, Name: policy.RecordName(of)}
}
