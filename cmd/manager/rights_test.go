// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/kustomize"
)

const managerAccount = "system:serviceaccount:memfit-system:memfit-controller-manager"

// TestRightsAreUsed runs the manager as its own ServiceAccount, with the rights of the built manifests, beside an API
// server that notes who asks for what: nothing is asked for that is not granted, and each right is used.
func TestRightsAreUsed(t *testing.T) {
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(
		policy,
		[]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, users: ["+managerAccount+"]}]\n"), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, func(e *envtest.Environment) {
		e.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policy).Set("audit-log-path", log).
			Set("feature-gates", "WatchList=false") // an older API server, where a watch begins with a list
	})
	granted := c.grant(t, "config/overlays/lab")
	c.createJSON(t, []byte(verticals))
	c.create(t, &v1alpha1.ClusterMemoryProfile{ObjectMeta: metav1.ObjectMeta{Name: "all"}})
	c.kubeconfig = c.asManager(t, dir)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	c.create(t, node)
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	if err := c.client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	p := c.start(
		t, "--metrics-secure=true", "--leader-elect", "--usage-interval=1s", "--usage-sources=kubelet,metrics-api",
	)
	p.ready(t)
	c.scenario(t, p)
	eventually(t, 3*time.Minute, func() error {
		asked, refused := audited(t, log)
		if len(refused) > 0 {
			t.Fatalf("the manager asks for what is not granted: %q", slices.Sorted(maps.Keys(refused)))
		}
		unused := slices.DeleteFunc(slices.Sorted(maps.Keys(granted)), func(r string) bool { return asked[r] })
		if len(unused) > 0 {
			return fmt.Errorf("granted, and nothing uses it: %q", unused)
		}
		return nil
	})
}

// scenario lets memfit do all that it can.
func (c *cluster) scenario(t *testing.T, p *process) {
	t.Helper()
	stranger := c.account(t, "default", "stranger")
	eventually(t, 2*time.Minute, func() error { // the port opens a moment after the manager is ready
		code, _, err := p.scrape(stranger, tls.VersionTLS13)
		if err == nil && code != http.StatusForbidden {
			err = fmt.Errorf("a stranger's scrape was answered with %d, want %d", code, http.StatusForbidden)
		}
		return err
	})
	pod := c.workload(t)
	profile := build.Profile("shop", "web", v1alpha1.RuntimeNodeJS)
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(profile), profile); err != nil {
		t.Fatal(err)
	}
	before := profile.DeepCopy()
	profile.Spec.Sizing.Mode, profile.Spec.Drift.Action = v1alpha1.SizingInPlaceOrEvict, v1alpha1.DriftRestart
	// A patch, because memfit writes the profile's status meanwhile.
	if err := c.client.Patch(t.Context(), profile, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	c.killed(t, pod)
	eventually(t, 2*time.Minute, func() error { return c.kills(t, 1) })

	// A Deployment with records that lost their owner and for another profile.
	api := build.Deployment("shop", "api", v1alpha1.ProfileAnnotation, "web")
	c.applied(t, api)
	set := build.ReplicaSet(api, "6d4f8c7b9")
	c.create(t, set)
	c.recorded(t, "shop", memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "api"})
	second := build.Pod(
		"shop", "api-6d4f8c7b9-x7k2p",
	).On("node-1").Container("app", build.Limit("256Mi"), build.Request("128Mi"),
		build.Command("node", "server.js"), build.Started(time.Now().Add(-time.Hour))).OwnedBy(
		set, "apps/v1", "ReplicaSet",
	).Obj()
	status := second.Status
	c.create(t, second)
	second.Status = status
	c.status(t, second)

	c.vanish(t)

	// The node has no room for the first pod's new size, and kills it again.
	eventually(t, 2*time.Minute, func() error {
		if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return client.IgnoreNotFound(err) // it was evicted already
		}
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible,
			Message: "Node didn't have enough capacity",
		})
		build.OOMKilled(time.Now())(&pod.Spec.Containers[0], &pod.Status.ContainerStatuses[0])
		return c.client.Status().Update(t.Context(), pod)
	})
}

// vanish deletes workloads of which memfit has records, which it asks for before it deletes those.
func (c *cluster) vanish(t *testing.T) {
	t.Helper()
	like := build.Deployment("default", "gone")
	for kind, obj := range map[[2]string]client.Object{
		{"apps/v1", "Deployment"}: like,
		{"apps/v1", "StatefulSet"}: &appsv1.StatefulSet{
			ObjectMeta: like.ObjectMeta,
			Spec:       appsv1.StatefulSetSpec{Selector: like.Spec.Selector, Template: like.Spec.Template},
		},
		{"apps/v1", "DaemonSet"}: build.DaemonSet("default", "gone"),
		{"apps/v1", "ReplicaSet"}: &appsv1.ReplicaSet{
			ObjectMeta: like.ObjectMeta,
			Spec:       appsv1.ReplicaSetSpec{Selector: like.Spec.Selector, Template: like.Spec.Template},
		},
		{"batch/v1", "Job"}:     build.Job("default", "gone", nil),
		{"batch/v1", "CronJob"}: build.CronJob("default", "gone"),
		{"v1", "ReplicationController"}: &corev1.ReplicationController{
			ObjectMeta: like.ObjectMeta, Spec: corev1.ReplicationControllerSpec{
				Selector: like.Spec.Selector.MatchLabels, Template: &like.Spec.Template,
			},
		},
	} {
		of := memory.WorkloadRef{APIVersion: kind[0], Kind: kind[1], Namespace: "default", Name: "gone"}
		c.recorded(t, "default", of)
		c.forgotten(t, of, func() error {
			again, _ := obj.DeepCopyObject().(client.Object)
			c.create(t, again) // again where the record came later than the deletion
			return c.client.Delete(t.Context(), again, client.PropagationPolicy(metav1.DeletePropagationBackground))
		})
	}
	pod := build.Pod("shop", "gone").On("node-1").Container(
		"app", build.Limit("256Mi"), build.Started(time.Now().Add(-time.Hour)),
	).Obj()
	pod.Annotations = map[string]string{v1alpha1.ProfileAnnotation: "web"}
	status := pod.Status
	c.create(t, pod)
	pod.Status = status
	c.status(t, pod)
	of := memory.WorkloadRef{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "gone"}
	record := &v1alpha1.MemoryRecommendation{}
	eventually(t, time.Minute, func() error {
		return c.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: policy.RecordName(of)}, record)
	})
	c.forgotten(t, of, func() error {
		return client.IgnoreNotFound(c.client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	})
}

// forgotten deletes a workload until its record is deleted.
func (c *cluster) forgotten(t *testing.T, of memory.WorkloadRef, remove func() error) {
	t.Helper()
	eventually(t, time.Minute, func() error {
		if err := remove(); err != nil {
			return err
		}
		key := client.ObjectKey{Namespace: of.Namespace, Name: policy.RecordName(of)}
		for range 20 {
			err := c.client.Get(t.Context(), key, &v1alpha1.MemoryRecommendation{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			time.Sleep(100 * time.Millisecond)
		}
		return fmt.Errorf("the record of %s is still there", of)
	})
}

// recorded creates what memfit has on file of a workload, without an owner.
func (c *cluster) recorded(t *testing.T, namespace string, of memory.WorkloadRef) {
	t.Helper()
	name := metav1.ObjectMeta{Namespace: namespace, Name: policy.RecordName(of)}
	c.create(t, &v1alpha1.MemoryRecommendation{ObjectMeta: name})
	c.create(t, &v1alpha1.MemoryCheckpoint{ObjectMeta: name})
}

// verticals is a kind by the name of the VerticalPodAutoscaler, which is not a part of Kubernetes.
const verticals = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "verticalpodautoscalers.autoscaling.k8s.io",
 "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/63797"}}, "spec": {"group": "autoscaling.k8s.io", "scope": "Namespaced",
 "names": {"kind": "VerticalPodAutoscaler", "listKind": "VerticalPodAutoscalerList", "plural": "verticalpodautoscalers", "singular": "verticalpodautoscaler"},
 "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`

// grant applies what a tree says about rights, and returns those of the manager's account: verb, API group, resource.
func (c *cluster) grant(t *testing.T, tree string) map[string]bool {
	t.Helper()
	manifests, err := kustomize.Build(tree)
	if err != nil {
		t.Fatalf("building %s: %v", tree, err)
	}
	rules, bound := map[string][]rbacv1.PolicyRule{}, map[string]bool{}
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		// A ClusterRole has the fields of a Role, and a ClusterRoleBinding those of a RoleBinding.
		var object struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`

			Rules    []rbacv1.PolicyRule `json:"rules"`
			Subjects []rbacv1.Subject    `json:"subjects"`
			RoleRef  rbacv1.RoleRef      `json:"roleRef"`
		}
		var raw runtime.RawExtension
		if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw.Raw, &object); err != nil {
			t.Fatal(err)
		}
		switch object.Kind {
		case "Namespace", "ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding":
			c.createJSON(t, raw.Raw)
		}
		rules[object.Kind+"/"+object.Name] = object.Rules
		if slices.ContainsFunc(
			object.Subjects, func(s rbacv1.Subject) bool { return s.Name == "memfit-controller-manager" },
		) {
			bound[object.RoleRef.Kind+"/"+object.RoleRef.Name] = true
		}
	}
	granted := map[string]bool{}
	for role := range bound {
		for _, rule := range rules[role] {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						granted[right(verb, group, resource)] = true
					}
				}
			}
		}
	}
	if len(granted) < 50 {
		t.Fatalf("%s grants the manager %d rights, which cannot be all", tree, len(granted))
	}
	return granted
}

func (c *cluster) createJSON(t *testing.T, manifest []byte) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(manifest, &object.Object); err != nil {
		t.Fatal(err)
	}
	c.create(t, object)
}

func right(verb, group, resource string) string {
	if group != "" {
		resource = group + "/" + resource
	}
	return verb + " " + resource
}

// asManager writes a kubeconfig with a token of the manager's ServiceAccount.
func (c *cluster) asManager(t *testing.T, dir string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: "memfit-system", Name: "memfit-controller-manager"},
	}
	if err := c.client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// audited are the rights that the API server was asked for, and those that it refused.
func audited(t *testing.T, log string) (asked, refused map[string]bool) {
	t.Helper()
	asked, refused = map[string]bool{}, map[string]bool{}
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(content) {
		var entry struct {
			Verb        string
			ObjectRef   struct{ Resource, Subresource, APIGroup string }
			Annotations map[string]string
		}
		if json.Unmarshal(line, &entry) != nil || entry.ObjectRef.Resource == "" {
			continue
		}
		resource := entry.ObjectRef.Resource
		if entry.ObjectRef.Subresource != "" {
			resource += "/" + entry.ObjectRef.Subresource
		}
		wanted := right(entry.Verb, entry.ObjectRef.APIGroup, resource)
		asked[wanted] = true
		if entry.Annotations["authorization.k8s.io/decision"] == "forbid" {
			refused[wanted] = true
		}
	}
	return asked, refused
}
