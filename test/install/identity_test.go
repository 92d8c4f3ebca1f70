// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// usageReader is the ServiceAccount that authenticates to kubelets.
const usageReader = "memfit-usage-reader"

// TestTokensForKubelets checks with a real API server that the manager may request tokens of usageReader only, and that
// such a token may only read statistics of nodes.
func TestTokensForKubelets(t *testing.T) {
	c := apiServer(t)
	for _, object := range build(t, "config/default") {
		switch object.GetKind() {
		case "Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
			if err := client.IgnoreAlreadyExists(c.Create(t.Context(), object.DeepCopy())); err != nil {
				t.Fatal(err)
			}
		}
	}
	asManager := rest.CopyConfig(server.config)
	asManager.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + manager,
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
	}
	accounts := kubernetes.NewForConfigOrDie(asManager).CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.CreateToken(
		t.Context(), manager, &authenticationv1.TokenRequest{}, metav1.CreateOptions{},
	); !apierrors.IsForbidden(err) {
		t.Errorf("requesting a token of %s: error %v, want a refusal", manager, err)
	}
	answer, err := accounts.CreateToken(t.Context(), usageReader, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	asReader := rest.AnonymousClientConfig(server.config)
	asReader.BearerToken = answer.Status.Token
	reviews := kubernetes.NewForConfigOrDie(asReader).AuthorizationV1().SelfSubjectAccessReviews()
	for _, tc := range []struct {
		verb, resource, sub string
		want                bool
	}{
		{"get", "nodes", "stats", true}, {"get", "nodes", "metrics", true}, {"get", "nodes", "proxy", false},
		{"list", "nodes", "", false},
		{"list", "pods", "", false}, {"create", "pods", "eviction", false}, {"patch", "pods", "resize", false},
		{"create", "serviceaccounts", "token", false},
	} {
		review, err := reviews.Create(t.Context(),
			&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: tc.verb, Resource: tc.resource, Subresource: tc.sub, Namespace: corev1.NamespaceAll,
				},
			}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed != tc.want {
			t.Errorf("%s may %s %s/%s: %t, want %t", usageReader, tc.verb, tc.resource, tc.sub, review.Status.Allowed, tc.want)
		}
	}
}
