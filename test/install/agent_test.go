// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
)

const (
	agent     = "memfit-agent" // namespace, ServiceAccount and DaemonSet
	watchTree = "config/overlays/agent-watch"
	seeTree   = "config/overlays/agent-see"
)

// TestAgentPrivileges checks that each tier of the agent has exactly the privileges that docs/guide/security.md lists.
func TestAgentPrivileges(t *testing.T) {
	type privileges struct {
		User         int64
		NonRoot      bool
		Capabilities corev1.Capabilities
		HostPaths    map[string]bool // whether all mounts of a path are read-only
	}
	cgroups := map[string]bool{"/sys/fs/cgroup": true}
	drop := []corev1.Capability{"ALL"}
	for tree, want := range map[string]privileges{
		watchTree: {65532, true, corev1.Capabilities{Drop: drop}, cgroups},
		seeTree: {
			0, false, corev1.Capabilities{Drop: drop, Add: []corev1.Capability{"SYS_PTRACE", "DAC_READ_SEARCH"}}, cgroups,
		},
	} {
		pod := one[appsv1.DaemonSet](t, build(t, tree), "DaemonSet", agent).Spec.Template.Spec
		if len(pod.Containers) != 1 || len(pod.InitContainers) != 0 || !pod.HostPID || pod.HostNetwork || pod.HostIPC {
			t.Errorf("%s: %d containers, hostPID %t, hostNetwork %t, hostIPC %t", tree, len(pod.Containers), pod.HostPID,
				pod.HostNetwork, pod.HostIPC)
		}
		c := pod.Containers[0]
		if *c.SecurityContext.Privileged || *c.SecurityContext.AllowPrivilegeEscalation ||
			!*c.SecurityContext.ReadOnlyRootFilesystem ||
			pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: %+v", tree, c.SecurityContext)
		}
		got := privileges{
			*pod.SecurityContext.RunAsUser, *pod.SecurityContext.RunAsNonRoot, *c.SecurityContext.Capabilities,
			map[string]bool{},
		}
		for _, v := range pod.Volumes {
			if v.HostPath == nil {
				t.Errorf("%s: volume %s is not a hostPath", tree, v.Name)
				continue
			}
			got.HostPaths[v.HostPath.Path] = !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
				return m.Name == v.Name && (!m.ReadOnly || *m.RecursiveReadOnly != corev1.RecursiveReadOnlyIfPossible)
			})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tree, diff)
		}
	}
}

// TestAgentIsOff checks that only the agent's own trees install the agent.
func TestAgentIsOff(t *testing.T) {
	for _, tree := range trees {
		if tree == watchTree || tree == seeTree {
			continue
		}
		if found := all[appsv1.DaemonSet](t, build(t, tree), "DaemonSet"); len(found) > 0 {
			t.Errorf("%s runs %s on every node", tree, found[0].Name)
		}
	}
}

// TestAgentsWriteForTheirOwnNode writes snapshots to a real API server with the pod-bound tokens of the agents of two
// nodes, and checks that an agent can write only its own node's name. Readers check that the snapshot's pod runs on
// that node (MemorySnapshot.IsOf).
func TestAgentsWriteForTheirOwnNode(t *testing.T) {
	c := apiServer(t)
	for _, object := range build(t, watchTree) {
		if object.GetNamespace() == agent && object.GetKind() == "ServiceAccount" ||
			strings.HasPrefix(object.GetName(), agent) && object.GetKind() != "DaemonSet" {
			if err := client.IgnoreAlreadyExists(c.Create(t.Context(), object.DeepCopy())); err != nil {
				t.Fatal(err)
			}
		}
	}
	ensure(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	ensure(t, c, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "default"}})
	pods := map[string]types.UID{}
	agents := map[string]client.Client{}
	for _, node := range []string{"node-a", "node-b"} {
		ensure(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
		pods[node] = ensure(t, c, podOn(node, "shop", "web-"+node, "default"))
		agents[node] = agentOf(t, ensure(t, c, podOn(node, agent, "agent-"+node, agent)), "agent-"+node)
	}
	unbound := agentOf(t, "", "")

	snapshot := func(node, pod string, owner types.UID) *v1alpha1.MemorySnapshot {
		return &v1alpha1.MemorySnapshot{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "MemorySnapshot"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: pod, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Pod", Name: pod, UID: owner},
			}},
			Status: v1alpha1.MemorySnapshotStatus{
				NodeName: node, Tier: v1alpha1.AgentWatch, CgroupVersion: "v2", ObservedTime: metav1.Now(),
			},
		}
	}
	for _, tc := range []struct {
		name     string
		as       client.Client
		snapshot *v1alpha1.MemorySnapshot
		refused  string // part of the error; "" when the write is allowed
	}{
		{"its own pod", agents["node-a"], snapshot("node-a", "web-node-a", pods["node-a"]), ""},
		{"its own pod, once more", agents["node-a"], snapshot("node-a", "web-node-a", pods["node-a"]), ""},
		{"in the name of another", agents["node-a"], snapshot("node-b", "web-node-b", pods["node-b"]), "status.nodeName"},
		{"without a bound token", unbound, snapshot("node-a", "web-node-a", pods["node-a"]), "does not say on which node"},
		{"the other agent's own", agents["node-b"], snapshot("node-b", "web-node-b", pods["node-b"]), ""},
	} {
		err := tryUntilKnown(func() error {
			return tc.as.Patch(t.Context(), tc.snapshot.DeepCopy(), client.Apply, //nolint:staticcheck // as the agent sends it
				client.FieldOwner(agent), client.ForceOwnership)
		}, tc.refused)
		switch {
		case tc.refused == "" && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case tc.refused != "" && (!apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), tc.refused)):
			t.Errorf("%s: error %v, want a refusal with %q", tc.name, err, tc.refused)
		}
	}
	orphan := snapshot("node-a", "web-node-a", pods["node-a"])
	orphan.OwnerReferences = nil
	if err := agents["node-a"].Create(t.Context(), orphan); err == nil {
		t.Error("a snapshot without an owner is allowed")
	}
	if err := agents["node-a"].Delete(t.Context(), snapshot("node-a", "web-node-a", "")); !apierrors.IsForbidden(err) {
		t.Errorf("an agent may delete snapshots: %v", err)
	}
	if err := agents["node-a"].Get(
		t.Context(), types.NamespacedName{Namespace: "shop", Name: "x"}, &corev1.Secret{},
	); !apierrors.IsForbidden(err) {
		t.Errorf("an agent may read Secrets: %v", err)
	}
}

// tryUntilKnown calls try for up to a minute, until its error contains refused, or until it succeeds if refused is "".
// The API server's own watches of policies and pods may lag.
func tryUntilKnown(try func() error, refused string) (err error) {
	for range 600 { // a minute, on a busy machine
		err = try()
		if refused == "" && err == nil || refused != "" && err != nil && strings.Contains(err.Error(), refused) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

func ensure(t *testing.T, c client.Client, object client.Object) types.UID {
	t.Helper()
	if err := client.IgnoreAlreadyExists(c.Create(t.Context(), object)); err != nil {
		t.Fatal(err)
	}
	return object.GetUID()
}

func podOn(node, namespace, name, account string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: account,
			Containers: []corev1.Container{{Name: "app", Image: "app"}},
		},
	}
}

// agentOf returns a client with an agent's token, bound to a pod as the kubelet requests it, or unbound if pod is "".
func agentOf(t *testing.T, uid types.UID, pod string) client.Client {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	if pod != "" {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod, UID: uid,
		}
	}
	answer, err := kubernetes.NewForConfigOrDie(server.config).CoreV1().ServiceAccounts(agent).
		CreateToken(t.Context(), agent, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(fmt.Errorf("requesting a token: %w", err))
	}
	config := rest.AnonymousClientConfig(server.config)
	config.BearerToken = answer.Status.Token
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
