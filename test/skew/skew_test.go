// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package skew

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
	"github.com/memfit/memfit/test/fakeproc/procdir"
	"github.com/memfit/memfit/test/tree"
)

const (
	shop      = "shop"
	node      = "node-a"
	inspected = "api-5d4f8c7b9-x7k2p" // the pod that agents inspect
)

// cluster is a real API server.
type cluster struct {
	client            client.Client
	config            *rest.Config
	kubeconfig, plain string // plain is a URL of the API server that needs no credentials
	cgroups           string
	pod               *corev1.Pod
	kills             int64
}

// TestSkew upgrades and downgrades one part after the other. In every combination each kill is counted once, profiles
// keep every field of their CRD, and no write is refused.
func TestSkew(t *testing.T) {
	then, now := older(t), built(t, "this tree", tree.Root())
	c := newCluster(t, then)

	t.Log("--- all parts of", then.name)
	manager, agent := then.manager(t, c.kubeconfig), then.agent(t, c.plain, c.cgroups)
	c.kill(t)
	c.finds(t, "Go")
	reads(t, then, c)

	t.Log("--- plugin of this tree; CRDs, objects, manager and agent of", then.name)
	reads(t, now, c)

	t.Log("--- manager of this tree on the CRDs of", then.name)
	manager.stop()
	manager = now.manager(t, c.kubeconfig)
	c.kill(t)
	c.again(t, "Go")
	noErrors(t, "the manager of this tree on older CRDs", manager)

	t.Log("--- CRDs of this tree; manager of this tree, agent of", then.name)
	c.install(t, now)
	c.kill(t)
	c.again(t, "Go")
	c.setTuning(t, map[string]any{"processes": int64(2), "reserve": "32Mi"})

	t.Log("--- plugin of", then.name, "; CRDs, objects and manager of this tree")
	reads(t, then, c)

	t.Log("--- agent of this tree")
	agent.stop()
	c.deleteSnapshot(t)
	agent = now.agent(t, c.plain, c.cgroups)
	eventually(t, "the agent inspects the pod", func() error { return c.snapshot(t) })
	reads(t, now, c)

	t.Log("--- back: manager of", then.name, "; CRDs, objects and agent of this tree")
	manager.stop()
	noErrors(t, "the manager of this tree", manager)
	c.recordChange(t, now)
	before := c.statuses(t)
	manager = then.manager(t, c.kubeconfig)
	c.kill(t)
	c.again(t, "Go")
	c.setTuning(t, nil)
	reads(t, then, c)
	manager.stop()
	noErrors(t, "the manager of "+then.name+" on newer CRDs", manager)
	for kind, fields := range lost(before, c.statuses(t)) {
		t.Logf("observed: the manager of %s dropped from the status of a %s: %v", then.name, kind, fields)
	}

	t.Log("--- forward again: all parts of this tree")
	manager = now.manager(t, c.kubeconfig)
	c.kill(t)
	c.setTuning(t, nil)
	reads(t, now, c)

	t.Log("--- a checkpoint of a future version")
	manager.stop()
	noErrors(t, "the manager of this tree", manager)
	c.futureCheckpoint(t, now)

	t.Log("--- agent of this tree on the CRDs of", then.name, ", which docs/guide/upgrading.md advises against")
	agent.stop()
	c.deleteSnapshot(t)
	c.install(t, then)
	c.writesOrReports(t, now.agent(t, c.plain, c.cgroups))
}

func newCluster(t *testing.T, r release) *cluster {
	t.Helper()
	c := &cluster{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), cgroups: t.TempDir()}
	logf.SetLogger(logr.Discard()) // envtest's logs
	var env *envtest.Environment
	c.config = expect.APIServer(t, func(e *envtest.Environment) { env, e.CRDDirectoryPaths = e, []string{r.crds} })
	if err := os.WriteFile(c.kubeconfig, env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.client, err = client.New(c.config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(c.config)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(c.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport, FlushInterval: -1,
	})
	t.Cleanup(proxy.CloseClientConnections) // Close would wait for open watches
	c.plain = proxy.URL
	c.fill(t)
	return c
}

// fill creates two workloads: web, whose kills are counted, and api, which declares a JVM and runs this Go program.
func (c *cluster) fill(t *testing.T) {
	t.Helper()
	c.create(t, build.Namespace(shop))
	c.create(t, build.Profile(shop, "web", v1alpha1.RuntimeNodeJS))
	c.create(t, build.Profile(shop, "api", v1alpha1.RuntimeJVM))
	for _, name := range []string{"web", "api"} {
		deployment := build.Deployment(shop, name, v1alpha1.ProfileAnnotation, name)
		c.create(t, deployment)
		set := build.ReplicaSet(deployment, "5d4f8c7b9")
		c.create(t, set)
		pod := build.Pod(shop, name+"-5d4f8c7b9-x7k2p").On(node).OwnedBy(set, "apps/v1", "ReplicaSet").
			Label("pod-template-hash", "5d4f8c7b9").
			Container("app", build.Limit("256Mi"), build.Request("128Mi"), build.Started(time.Now().Add(-time.Hour))).Obj()
		status := pod.Status
		c.create(t, pod)
		pod.Status = status
		if name == "api" {
			id := fmt.Sprintf("%064x", 1)
			pod.Status.ContainerStatuses[0].ContainerID = "containerd://" + id
			c.writeCgroups(t, pod.UID, id)
		} else {
			c.pod = pod
		}
		if err := c.client.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *cluster) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := c.client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// writeCgroups writes the cgroup v1 and proc files of a container that contains this process.
func (c *cluster) writeCgroups(t *testing.T, uid types.UID, id string) {
	t.Helper()
	pod := filepath.Join("memory", "kubepods", "burstable", "pod"+string(uid))
	at := filepath.Join(pod, id)
	const limit, use = "268435456\n", "134217728\n"
	for file, text := range map[string]string{
		filepath.Join("memory", "memory.stat"): "total_rss 0\n", filepath.Join(pod, "memory.limit_in_bytes"): limit,
		filepath.Join(pod, "memory.usage_in_bytes"): use, filepath.Join(at, "memory.limit_in_bytes"): limit,
		filepath.Join(at, "memory.usage_in_bytes"): use, filepath.Join(at, "memory.stat"): "total_rss " + use,
		filepath.Join(at, "cgroup.procs"):       strconv.Itoa(os.Getpid()) + "\n",
		filepath.Join(at, "memory.oom_control"): "under_oom 0\noom_kill 0\n",
	} {
		file = filepath.Join(c.cgroups, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	proc := filepath.Join(c.cgroups, "proc")
	if err := os.MkdirAll(proc, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := procdir.Add(proc, os.Getpid(), os.Getpid(), procdir.Cgroup(string(uid), id)); err != nil {
		t.Fatal(err)
	}
}

// install installs the CRDs of a release, and waits until the API server uses them.
func (c *cluster) install(t *testing.T, r release) {
	t.Helper()
	if _, err := envtest.InstallCRDs(c.config, envtest.CRDInstallOptions{Paths: []string{r.crds}}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // the API server replaces its handlers after the CRD's condition Established
}

// kill reports another OOM kill in the pod's status, and checks that exactly the reported kills are counted.
func (c *cluster) kill(t *testing.T) {
	t.Helper()
	c.kills++
	build.OOMKilled(time.Now())(&c.pod.Spec.Containers[0], &c.pod.Status.ContainerStatuses[0])
	if err := c.client.Status().Update(t.Context(), c.pod); err != nil {
		t.Fatal(err)
	}
	count := func() error {
		rec, err := c.recommendation(t.Context(), "web")
		if err == nil && rec.Status.OOMKills != c.kills {
			err = fmt.Errorf("%d kills counted, want %d", rec.Status.OOMKills, c.kills)
		}
		return err
	}
	eventually(t, "the kill is counted", count)
	eventually(t, "the profile has the kill", func() error {
		var p v1alpha1.MemoryProfile
		err := c.client.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: "web"}, &p)
		if err == nil && p.Status.OOMKills != c.kills {
			err = fmt.Errorf("%d kills in the profile, want %d", p.Status.OOMKills, c.kills)
		}
		return err
	})
	time.Sleep(time.Second) // the count must not rise further
	if err := count(); err != nil {
		t.Error(err)
	}
}

func (c *cluster) recommendation(ctx context.Context, workload string) (*v1alpha1.MemoryRecommendation, error) {
	var rec v1alpha1.MemoryRecommendation
	return &rec, c.client.Get(ctx, client.ObjectKey{Namespace: shop, Name: "deployment-" + workload}, &rec)
}

// finds waits until the recommendation has the runtime that an agent found, which differs from the profile's.
func (c *cluster) finds(t *testing.T, runtime string) {
	t.Helper()
	eventually(t, "the manager reads the agent's snapshot", func() error {
		rec, err := c.recommendation(t.Context(), "api")
		if err != nil {
			return err
		}
		for i := range rec.Status.Containers {
			if found := rec.Status.Containers[i].FoundRuntime; found != nil && string(found.Type) == runtime {
				return nil
			}
		}
		return errors.New("the recommendation of api has no found runtime")
	})
}

// again is like finds, but deletes the recommendation first, so that the current manager writes it.
func (c *cluster) again(t *testing.T, runtime string) {
	t.Helper()
	rec, err := c.recommendation(t.Context(), "api")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.client.Delete(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	c.finds(t, runtime)
}

// deleteSnapshot deletes the agent's snapshot, so that the next agent must write it.
func (c *cluster) deleteSnapshot(t *testing.T) {
	t.Helper()
	snapshot := &v1alpha1.MemorySnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: inspected}}
	if err := c.client.Delete(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) snapshot(t *testing.T) error {
	t.Helper()
	var s v1alpha1.MemorySnapshot
	if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: inspected}, &s); err != nil {
		return err
	}
	if len(s.Status.Containers) == 0 || s.Status.Containers[0].Runtime == nil {
		return errors.New("the snapshot has no runtime")
	}
	return nil
}

// writesOrReports waits until the agent writes a snapshot or logs an error, and logs which.
func (c *cluster) writesOrReports(t *testing.T, agent *process) {
	t.Helper()
	eventually(t, "the agent writes a snapshot or logs an error", func() error {
		if len(agent.log.errors()) > 0 {
			return nil
		}
		return c.snapshot(t)
	})
	t.Logf("observed: reading the snapshot: %v; errors in the agent's log: %.1000q", c.snapshot(t), agent.log.errors())
}

// setTuning sets fields of the profile's tuning, if any, and checks that the profile has processes and reserve.
func (c *cluster) setTuning(t *testing.T, fields map[string]any) {
	t.Helper()
	p := &unstructured.Unstructured{}
	p.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MemoryProfile"))
	key := client.ObjectKey{Namespace: shop, Name: "web"}
	if err := c.client.Get(t.Context(), key, p); err != nil {
		t.Fatal(err)
	}
	if fields != nil {
		before := p.DeepCopy()
		if err := unstructured.SetNestedMap(p.Object, fields, "spec", "tuning"); err != nil {
			t.Fatal(err)
		}
		if err := c.client.Patch(t.Context(), p, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	for _, field := range []string{"processes", "reserve"} {
		if _, has, err := unstructured.NestedFieldNoCopy(p.Object, "spec", "tuning", field); !has || err != nil {
			t.Errorf("the profile has lost spec.tuning.%s: %v", field, p.Object["spec"])
		}
	}
}

// statuses returns the statuses that memfit wrote, by kind, and the decoded sizing of the checkpoint.
func (c *cluster) statuses(t *testing.T) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for kind, name := range map[string]string{
		"MemoryProfile": "web", "MemoryRecommendation": "deployment-web", "MemoryCheckpoint": "deployment-web",
	} {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
		if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: name}, o); err != nil {
			t.Fatal(err)
		}
		all[kind], _, _ = unstructured.NestedMap(o.Object, "status")
	}
	sizing := map[string]any{}
	if text, ok := all["MemoryCheckpoint"]["sizing"].(string); ok {
		inside, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(inside, &sizing); err != nil {
			t.Fatal(err)
		}
	}
	all["MemoryCheckpoint, in sizing,"] = sizing
	return all
}

// recordChange adds a change to the checkpoint, which older releases lack, and checks that a manager of this release
// reports it.
func (c *cluster) recordChange(t *testing.T, r release) {
	t.Helper()
	var stored v1alpha1.MemoryCheckpoint
	if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: "deployment-web"}, &stored); err != nil {
		t.Fatal(err)
	}
	var state rollout.State
	if len(stored.Status.Sizing) > 0 {
		if err := json.Unmarshal(stored.Status.Sizing, &state); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Now().Add(-time.Minute)
	state.Changes = []rollout.Change{{Kind: rollout.Resized, At: at, Since: at, Pod: c.pod.Name, Pods: 1}}
	var err error
	if stored.Status.Sizing, err = json.Marshal(&state); err != nil {
		t.Fatal(err)
	}
	if err := c.client.Status().Update(t.Context(), &stored); err != nil {
		t.Fatal(err)
	}
	manager := r.manager(t, c.kubeconfig)
	c.kill(t)
	rec, err := c.recommendation(t.Context(), "web")
	if err != nil || len(rec.Status.RecentChanges) != 1 {
		t.Errorf("the manager of this tree lost the recorded change: %+v, %v", rec.Status.RecentChanges, err)
	}
	manager.stop()
}

// lost returns the fields of before that are missing in after, by kind.
func lost(before, after map[string]map[string]any) map[string][]string {
	out := map[string][]string{}
	for kind, status := range before {
		for field := range status {
			if _, has := after[kind][field]; !has {
				out[kind] = append(out[kind], field)
			}
		}
	}
	return out
}

// futureCheckpoint checks that a manager reports a checkpoint of an unknown version and does not change it.
func (c *cluster) futureCheckpoint(t *testing.T, r release) {
	t.Helper()
	var future v1alpha1.MemoryCheckpoint
	key := client.ObjectKey{Namespace: shop, Name: "deployment-web"}
	if err := c.client.Get(t.Context(), key, &future); err != nil {
		t.Fatal(err)
	}
	future.Status.Version = 99
	if err := c.client.Status().Update(t.Context(), &future); err != nil {
		t.Fatal(err)
	}
	manager := r.manager(t, c.kubeconfig)
	build.OOMKilled(time.Now())(&c.pod.Spec.Containers[0], &c.pod.Status.ContainerStatuses[0])
	if err := c.client.Status().Update(t.Context(), c.pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the manager reports that the checkpoint is newer", func() error {
		for _, line := range manager.log.errors() {
			if strings.Contains(line, "was written by a newer memfit (version 99") {
				return nil
			}
		}
		return errors.New("not found in the manager's log")
	})
	manager.stop()
	var after v1alpha1.MemoryCheckpoint
	if err := c.client.Get(t.Context(), key, &after); err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(after.Status, future.Status) {
		t.Error("a checkpoint of a newer version was changed")
	}
}

// noErrors checks that a program logged neither errors nor warnings about unknown fields.
func noErrors(t *testing.T, name string, p *process) {
	t.Helper()
	for _, line := range p.log.errors() {
		t.Errorf("%s: %s", name, line)
	}
}

// reads checks each plugin command that reads the cluster.
func reads(t *testing.T, r release, c *cluster) {
	t.Helper()
	r.plugin(t, c.kubeconfig, "deployment/web", "status")
	r.plugin(t, c.kubeconfig, "OOM", "explain", "deployment/web")
	r.plugin(t, c.kubeconfig, "memory", "export", "deployment/web")
	r.plugin(t, c.kubeconfig, "deployment/api", "scan")
	r.plugin(t, c.kubeconfig, "Go", "top")
	r.plugin(t, c.kubeconfig, "Go", "why", inspected)
	r.plugin(t, c.kubeconfig, "Go", "map", inspected)
}
