// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/inventory"
	"github.com/memfit/memfit/internal/identity"
)

// open returns a cluster that a kubeconfig with this server and this user names.
func open(t *testing.T, server, user string) (*Cluster, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
  clusters: [{name: c, cluster: {server: %q}}],
  users: [{name: u, user: %s}],
  contexts: [{name: c, context: {cluster: c, user: u, namespace: shop}}]}`, server, user)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &file
	return Open(flags)
}

// TestAuthProviders: kubeconfigs of OpenID Connect work as they do for kubectl.
func TestAuthProviders(t *testing.T) {
	_, err := open(t, "https://127.0.0.1:1", `{auth-provider: {name: oidc, config: {client-id: memfit,
    idp-issuer-url: "https://127.0.0.1:2", id-token: x}}}`)
	if err != nil {
		t.Error(err)
	}
	_, err = open(t, "https://127.0.0.1:1", `{auth-provider: {name: gcp}}`)
	if err == nil || !strings.Contains(err.Error(), "gke-gcloud-auth-plugin") {
		t.Errorf("%v: what replaces the provider of gcp is not named", err)
	}
}

// podOf is a pod as the API server's metadata have it.
func podOf(name, owner string, labels map[string]string) *metav1.PartialObjectMetadata {
	pod := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels},
	}
	if kind, name, owned := strings.Cut(owner, "/"); owned {
		group := map[string]string{
			"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1",
		}[kind]
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: group, Kind: kind, Name: name, Controller: new(true)}}
	}
	return pod
}

func snapshotOf(pod string, observed, killed int64) *unstructured.Unstructured {
	var s v1alpha1.MemorySnapshot
	s.APIVersion, s.Kind = v1alpha1.GroupVersion.String(), "MemorySnapshot"
	s.Namespace, s.Name, s.Status.ObservedTime = "shop", pod, metav1.Unix(observed, 0)
	c := v1alpha1.ContainerSnapshot{Container: "app"}
	if killed > 0 {
		c.LastKill = &v1alpha1.KillSnapshot{Time: metav1.Unix(killed, 0)}
	}
	s.Status.Containers = []v1alpha1.ContainerSnapshot{c}
	fields, err := kruntime.DefaultUnstructuredConverter.ToUnstructured(&s)
	if err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: fields}
}

// fake is a shop with Deployments web and web-api, a JobSet, and a StatefulSet without agents.
func fake(t *testing.T) *Cluster {
	t.Helper()
	scheme := kruntime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hash := func(h string) map[string]string { return map[string]string{"pod-template-hash": h} }
	job := &unstructured.Unstructured{}
	job.SetAPIVersion("batch/v1")
	job.SetKind("Job")
	job.SetNamespace("shop")
	job.SetName("train-0")
	job.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "train", Controller: new(true)},
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, meta.RESTScopeNamespace)
	lists := map[schema.GroupVersionResource]string{
		v1alpha1.GroupVersion.WithResource(snapshots): "MemorySnapshotList", {Version: "v1", Resource: "pods"}: "PodList",
	}
	return &Cluster{
		Namespace: "shop",
		metadata: metadatafake.NewSimpleMetadataClient(scheme,
			podOf("web-1-aaaaa", "ReplicaSet/web-1", hash("1")), podOf("web-1-bbbbb", "ReplicaSet/web-1", hash("1")),
			podOf("web-1-ccccc", "ReplicaSet/web-1", hash("1")), podOf("web-1-ddddd", "ReplicaSet/web-1", hash("1")),
			podOf("web-api-2-aaaaa", "ReplicaSet/web-api-2", hash("2")), podOf("train-0-0-x", "Job/train-0", nil),
			podOf("db-0", "StatefulSet/db", nil), podOf("web", "", nil)),
		client: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(scheme, lists, job,
			snapshotOf("web-1-aaaaa", 900, 0), snapshotOf("web-1-bbbbb", 100, 50), snapshotOf("web-1-ccccc", 100, 70),
			snapshotOf("web-api-2-aaaaa", 990, 980)),
		mapper: func() (meta.RESTMapper, error) { return mapper, nil },
	}
}

// TestOwner: the workload of a pod is read, and not guessed from names: web-api is another Deployment than web.
func TestOwner(t *testing.T) {
	c := fake(t)
	for pod, want := range map[string]string{
		"web-1-aaaaa": "apps/v1 Deployment web", "web-api-2-aaaaa": "apps/v1 Deployment web-api",
		"train-0-0-x": "jobset.x-k8s.io/v1alpha2 JobSet train", "db-0": "apps/v1 StatefulSet db", "web": "v1 Pod web",
		"gone": "",
	} {
		owner, err := c.Owner(t.Context(), pod, inventory.Records{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if owner != nil {
			got = owner.APIVersion + " " + owner.Kind + " " + owner.Name
		}
		if got != want {
			t.Errorf("%s belongs to %q, want %q", pod, got, want)
		}
	}
}

// TestChoose: of a workload it is the pod with the newest kill, whatever was observed of others since.
func TestChoose(t *testing.T) {
	c := fake(t)
	for asked, want := range map[string]string{
		"deployment/web": "web-1-ccccc OOM kill 70 web-1-aaaaa web-1-bbbbb web-1-ddddd",
		"deploy/web-api": "web-api-2-aaaaa OOM kill 980", "web-api": "web-api-2-aaaaa OOM kill 980",
	} {
		choice, err := c.Choose(t.Context(), asked, nil)
		got := strings.TrimSpace(fmt.Sprint(
			choice.Pod, " ", choice.Event, " ", choice.Newest.Unix(), " ", strings.Join(choice.Others, " "),
		))
		if err != nil || got != want {
			t.Errorf("%s: %v, got %q, want %q", asked, err, got, want)
		}
	}
	if _, err := c.Choose(t.Context(), "daemonset/web", nil); !errors.Is(err, ErrNoPod) ||
		!strings.Contains(err.Error(), "kubectl memfit scan -n shop") {
		t.Errorf("of a workload that is not there: %v", err)
	}
}

// TestChooseByClassOfNodes: of a DaemonSet on a class of nodes, a pod on such a node is chosen.
func TestChooseByClassOfNodes(t *testing.T) {
	rec := &v1alpha1.MemoryRecommendation{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nodeclass-log-small"}}
	rec.Status.Workload = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "log"}
	rec.Status.Identity = &v1alpha1.PodIdentity{
		Platform: identity.ByNode, Values: []string{"log", "small"}, Labels: []string{"size"},
	}
	scheme := kruntime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var known, snapshotted []kruntime.Object
	for i, size := range []string{"small", "large", "small"} {
		node, pod := fmt.Sprintf("node-%d", i), fmt.Sprintf("log-%d", i)
		known = append(known, podOf(pod, "DaemonSet/log", nil), &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{"size": size}},
		})
		s := snapshotOf(pod, 900, []int64{0, 30, 20}[i])
		_ = unstructured.SetNestedField(s.Object, node, "status", "nodeName")
		snapshotted = append(snapshotted, s)
	}
	choose := func(snapshotted ...kruntime.Object) (Choice, error) {
		c := &Cluster{
			Namespace: "shop",
			metadata:  metadatafake.NewSimpleMetadataClient(scheme, known...),
			client: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(scheme,
				map[schema.GroupVersionResource]string{
					v1alpha1.GroupVersion.WithResource(snapshots): "MemorySnapshotList",
				}, snapshotted...),
		}
		return c.Choose(t.Context(), rec.Name, rec)
	}
	choice, err := choose(snapshotted...)
	if err != nil || choice.Pod != "log-2" || !slices.Equal(choice.Others, []string{"log-0"}) {
		t.Errorf("%+v (%v), want log-2 and log-0: log-1 is on a large node", choice, err)
	}
	known = known[2:4]
	if choice, err := choose(snapshotted[1]); !errors.Is(err, ErrNoPod) {
		t.Errorf("%+v (%v), and none runs on a small node", choice, err)
	}
}

// large serves a namespace of pods as a real cluster has them, page by page: managedFields, annotations of kubectl
// apply, status, and a snapshot of each with a map of its pages.
func large(t *testing.T, n int) (url string) {
	t.Helper()
	const size = 500
	pod := corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "NAME", UID: "u", Labels: map[string]string{"pod-template-hash": "1"},
			Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", 2000)},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", Controller: new(true)},
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kubelet", FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:status":{` + strings.Repeat(`"f:x":{},`, 400) + `"f:y":{}}}`),
			}},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{
			Name: "app", Image: "registry.example.com/shop/web:1", Command: []string{"node", "server.js"},
			Env:       []corev1.EnvVar{{Name: "NODE_OPTIONS", Value: strings.Repeat("y", 1000)}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("512Mi")}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Message: strings.Repeat("z", 1000)},
	}
	snapshot := snapshotOf("NAME", 100, 50)
	c := map[string]any{
		"container": "app", "demand": "300Mi", "limit": "512Mi", "inspection": "Done", "summary": strings.Repeat("s", 200),
		"runtime": map[string]any{"type": "NodeJS", "version": "20.1.0", "evidence": []any{"node exports node::Start"}},
		"memory": map[string]any{
			"resident": "280Mi", "unexplained": "1Mi", "time": "2026-11-22T14:03:12Z",
			"parts": []any{map[string]any{"name": strings.Repeat("p", 2000), "group": "Heap", "resident": "200Mi"}},
		},
	}
	_ = unstructured.SetNestedSlice(snapshot.Object, []any{c}, "status", "containers")
	_ = unstructured.SetNestedField(snapshot.Object, "node-1", "status", "nodeName")
	snapshot.SetOwnerReferences([]metav1.OwnerReference{{UID: "u"}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		item, kind := any(pod), "PodList"
		switch {
		case strings.HasSuffix(r.URL.Path, "/memorysnapshots"):
			item, kind = snapshot.Object, "MemorySnapshotList"
		case !strings.HasSuffix(r.URL.Path, "/pods") || strings.Contains(r.URL.Path, "metrics"):
			http.NotFound(w, r)
			return
		}
		text, err := json.Marshal(item)
		if err != nil {
			panic(err)
		}
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		next, version := "", "v1"
		if from+size < n {
			next = strconv.Itoa(from + size)
		}
		if kind != "PodList" {
			version = v1alpha1.GroupVersion.String()
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"metadata":{"continue":%q},"items":[`, version, kind, next)
		for i := from; i < min(from+size, n); i++ {
			if i > from {
				_, _ = w.Write([]byte(","))
			}
			_, _ = w.Write(bytes.Replace(text, []byte("NAME"), []byte(fmt.Sprintf("web-1-%05d", i)), 1))
		}
		_, _ = w.Write([]byte("]}"))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestMemoryOfALargeNamespace bounds what is kept of a pod and its snapshot, some 15 KB of JSON. A cluster of a hundred
// thousand pods must fit into a laptop.
func TestMemoryOfALargeNamespace(t *testing.T) {
	const n, perPod = 2000, 2 << 10
	c, err := open(t, large(t, n), `{token: x}`)
	if err != nil {
		t.Fatal(err)
	}
	in := inventory.New(inventory.Records{})
	before := live()
	if err := c.EachPod(t.Context(), in.AddPod); err != nil {
		t.Fatal(err)
	}
	if err := c.EachSnapshot(t.Context(), in.AddSnapshot); err != nil {
		t.Fatal(err)
	}
	if got := live() - before; got > n*perPod {
		t.Errorf("%d pods take %d bytes, %d each, and may take %d", n, got, got/n, perPod)
	}
	all := in.Containers()
	if len(all) != n || all[n-1].Runtime.From != inventory.FromAgent || all[n-1].Parts == nil {
		t.Errorf("%d containers, the last one %+v", len(all), all[n-1])
	}
	runtime.KeepAlive(in)
}

func live() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
