// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	namespace = "memfit-system"
	manager   = "memfit-controller-manager"
)

// deployment returns the manager's Deployment of a tree.
func deployment(t *testing.T, tree string) appsv1.Deployment {
	t.Helper()
	return one[appsv1.Deployment](t, build(t, tree), "Deployment", manager)
}

func TestContainersHaveResources(t *testing.T) {
	for _, tree := range trees {
		for _, d := range all[appsv1.Deployment](t, build(t, tree), "Deployment") {
			for _, c := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
				switch {
				case c.Resources.Requests.Cpu().IsZero():
					t.Errorf("%s: %s/%s has no CPU request: a busy node would delay webhook calls", tree, d.Name, c.Name)
				case c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero():
					t.Errorf("%s: %s/%s has no memory request or limit", tree, d.Name, c.Name)
				case !c.Resources.Limits.Cpu().IsZero():
					t.Errorf("%s: %s/%s has a CPU limit: throttling would time out webhook calls in a burst", tree, d.Name, c.Name)
				}
			}
		}
	}
}

// TestPodWebhook checks the fields that keep a cluster running while memfit is down.
func TestPodWebhook(t *testing.T) {
	for _, tree := range withWebhook() {
		config := one[admissionregistrationv1.MutatingWebhookConfiguration](t, build(t, tree),
			"MutatingWebhookConfiguration", "memfit-mutating-webhook-configuration")
		// A patch with a wrong webhook name adds a second, broken webhook.
		if len(config.Webhooks) != 1 {
			t.Fatalf("%s: %d mutating webhooks, want 1: does webhook/pod_webhook_patch.yaml have the name in the markers?",
				tree, len(config.Webhooks))
		}
		type fields struct {
			FailurePolicy admissionregistrationv1.FailurePolicyType
			Reinvocation  admissionregistrationv1.ReinvocationPolicyType
			SideEffects   admissionregistrationv1.SideEffectClass
			Timeout       int32
			Resources     []string
			Operations    []admissionregistrationv1.OperationType
			Service       string
		}
		w := config.Webhooks[0]
		if len(w.Rules) != 1 {
			t.Fatalf("%s: %d rules, want 1", tree, len(w.Rules))
		}
		got := fields{
			*w.FailurePolicy, *w.ReinvocationPolicy, *w.SideEffects, *w.TimeoutSeconds, w.Rules[0].Resources,
			w.Rules[0].Operations,
			w.ClientConfig.Service.Namespace + "/" + w.ClientConfig.Service.Name,
		}
		want := fields{
			"Ignore", "IfNeeded", "None", 2, []string{"pods", "jobs"}, []admissionregistrationv1.OperationType{"CREATE"},
			namespace + "/memfit-webhook-service",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: pod webhook (-want +got):\n%s", tree, diff)
		}
	}
}

// TestPodWebhookSparesNamespaces checks that the webhook skips the namespaces that memfit and the cluster need to
// start. The selector has memfit's namespace by name, which users who rename the namespace must change too.
func TestPodWebhookSparesNamespaces(t *testing.T) {
	for _, tree := range withWebhook() {
		config := one[admissionregistrationv1.MutatingWebhookConfiguration](t, build(t, tree),
			"MutatingWebhookConfiguration", "memfit-mutating-webhook-configuration")
		selector, err := metav1.LabelSelectorAsSelector(config.Webhooks[0].NamespaceSelector)
		if err != nil {
			t.Fatalf("%s: %v", tree, err)
		}
		for name, want := range map[string]bool{
			"shop": true, "default": true,
			"kube-system": false, "kube-node-lease": false, "cert-manager": false, deployment(t, tree).Namespace: false,
		} {
			if got := selector.Matches(labels.Set{corev1.LabelMetadataName: name}); got != want {
				t.Errorf("%s: pods of namespace %s reach the webhook: %t, want %t", tree, name, got, want)
			}
		}
	}
}

// TestServicesReachTheManager checks selectors and ports, which are strings in four files.
func TestServicesReachTheManager(t *testing.T) {
	for _, tree := range trees {
		objects := build(t, tree)
		template := deployment(t, tree).Spec.Template
		ports := map[string]bool{}
		for _, p := range managerOf(t, &template.Spec).Ports {
			ports[p.Name] = true
		}
		services := all[corev1.Service](t, objects, "Service")
		want := 2
		if tree == observeTree {
			want = 1
		}
		if len(services) != want {
			t.Errorf("%s: %d Services, want %d: one for metrics, and one for the webhook if any", tree, len(services), want)
		}
		for _, s := range services {
			if !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(template.Labels)) {
				t.Errorf("%s: Service %s selects %v, which is not the manager", tree, s.Name, s.Spec.Selector)
			}
			for _, p := range s.Spec.Ports {
				if !ports[p.TargetPort.String()] {
					t.Errorf("%s: Service %s targets port %s, the manager has %v", tree, s.Name, p.TargetPort.String(), ports)
				}
			}
		}
		for _, p := range all[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy") {
			for _, rule := range p.Spec.Ingress {
				for _, port := range rule.Ports {
					if !ports[port.Port.String()] {
						t.Errorf("%s: NetworkPolicy %s allows port %s, the manager has %v", tree, p.Name, port.Port.String(), ports)
					}
				}
			}
			if slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
				t.Errorf("%s: NetworkPolicy %s restricts egress, but the API server's port is unknown", tree, p.Name)
			}
		}
	}
}

// TestDrains checks replicas and disruption budget, so that a node drain neither stops the webhook nor hangs.
func TestDrains(t *testing.T) {
	for _, tree := range trees {
		d := deployment(t, tree)
		budget := one[policyv1.PodDisruptionBudget](t, build(t, tree), "PodDisruptionBudget", manager)
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			t.Fatal(err)
		}
		if !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
			t.Errorf("%s: the budget selects %s, which is not the manager", tree, selector)
		}
		if budget.Spec.MaxUnavailable == nil || budget.Spec.MaxUnavailable.IntValue() != 1 || *d.Spec.Replicas < 2 {
			t.Errorf(
				"%s: %d replicas with maxUnavailable %v, want at least 2 with 1", tree, *d.Spec.Replicas,
				budget.Spec.MaxUnavailable,
			)
		}
	}
}

// TestClusterRoles checks built manifests, as TestClusterRolesStaySmall of test/arch checks their files.
func TestClusterRoles(t *testing.T) {
	for _, tree := range trees {
		for _, role := range all[rbacv1.ClusterRole](t, build(t, tree), "ClusterRole") {
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					if resource == "secrets" || resource == "nodes/proxy" || strings.Contains(resource, "*") {
						t.Errorf("%s: ClusterRole %s may not name %q", tree, role.Name, resource)
					}
				}
				if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.APIGroups, "*") {
					t.Errorf("%s: ClusterRole %s has a wildcard in %v", tree, role.Name, rule)
				}
			}
		}
	}
}

// TestBindings checks that each role is bound, and that each binding names an existing role and the right subjects.
// Mistakes would otherwise appear only at run time.
func TestBindings(t *testing.T) {
	people := []string{"-admin-role", "-editor-role", "-viewer-role", "memfit-metrics-reader"}
	for _, tree := range trees {
		objects := build(t, tree)
		roles, bound := map[string]bool{}, map[string]bool{}
		for _, object := range objects {
			if k := object.GetKind(); k == "ClusterRole" || k == "Role" {
				roles[k+" "+object.GetName()] = true
			}
		}
		subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: manager, Namespace: namespace}}
		check := func(name string, ref rbacv1.RoleRef, got []rbacv1.Subject) {
			bound[ref.Kind+" "+ref.Name] = true
			subjects := subjects
			switch ref.Name {
			case "memfit-usage-reader-role":
				subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Name: "memfit-usage-reader", Namespace: namespace}}
			case "memfit-agent-role":
				subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Name: agent, Namespace: agent}}
			}
			if !roles[ref.Kind+" "+ref.Name] {
				t.Errorf("%s: %s binds %s %s, which does not exist", tree, name, ref.Kind, ref.Name)
			}
			if diff := cmp.Diff(subjects, got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", tree, name, diff)
			}
		}
		for _, b := range all[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding") {
			check(b.Name, b.RoleRef, b.Subjects)
		}
		for _, b := range all[rbacv1.RoleBinding](t, objects, "RoleBinding") {
			check(b.Name, b.RoleRef, b.Subjects)
		}
		for role := range roles {
			isForPeople := slices.ContainsFunc(people, func(suffix string) bool { return strings.HasSuffix(role, suffix) })
			if !isForPeople && !bound[role] {
				t.Errorf("%s: no binding names %s", tree, role)
			}
		}
	}
}

// TestNobodyWritesWhatMemfitWrites checks that roles for users do not allow writes of recommendations, snapshots and
// checkpoints, which only memfit and its agents write, and to which cluster roles they are aggregated.
func TestNobodyWritesWhatMemfitWrites(t *testing.T) {
	roles := all[rbacv1.ClusterRole](t, build(t, "config/default"), "ClusterRole")
	ours := []string{"memorycheckpoints", "memoryrecommendations", "memorysnapshots"}
	aggregated := map[string][]string{}
	for _, role := range roles {
		for label := range role.Labels {
			if to, ok := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); ok {
				aggregated[to] = append(aggregated[to], role.Name)
			}
		}
		if role.Name == "memfit-manager-role" {
			continue
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				writes := slices.ContainsFunc(rule.Verbs, func(v string) bool { return v != "get" && v != "list" && v != "watch" })
				if kind, _, _ := strings.Cut(resource, "/"); writes && slices.Contains(ours, kind) {
					t.Errorf("ClusterRole %s allows users to %v %s", role.Name, rule.Verbs, resource)
				}
			}
		}
	}
	for _, names := range aggregated {
		slices.Sort(names)
	}
	want := map[string][]string{
		"admin": {"memfit-memoryprofile-admin-role"},
		"edit":  {"memfit-memoryprofile-editor-role"},
		"view": {
			"memfit-clustermemoryprofile-viewer-role", "memfit-memoryprofile-viewer-role",
			"memfit-memoryrecommendation-viewer-role", "memfit-memorysnapshot-viewer-role",
		},
	}
	if diff := cmp.Diff(want, aggregated); diff != "" {
		t.Errorf("roles aggregated to cluster roles (-want +got):\n%s", diff)
	}
}
