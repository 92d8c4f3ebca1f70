// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/test/build"
)

// TestWhoMayReadMetrics: the port speaks TLS 1.2 or newer, whatever Go's default is, and answers only whom the API
// server knows and RBAC lets read.
func TestWhoMayReadMetrics(t *testing.T) {
	c := commonCluster(t)
	t.Setenv("GODEBUG", "tls10server=1") // Go's old default, so that what is seen is memfit's own minimum
	p := c.start(t, "--metrics-secure=true")
	p.ready(t)
	c.create(t, build.Namespace(c.namespace))
	stranger, reader := c.account(t, c.namespace, "stranger"), c.account(t, c.namespace, "reader")
	c.create(t, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	})
	c.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.namespace, Name: "reader"}},
	})
	eventually(t, 30*time.Second, func() error { // the API server's authorizer learns of the binding a moment later
		if code, body, err := p.scrape(reader, tls.VersionTLS12); err != nil || code != http.StatusOK ||
			!strings.Contains(body, "memfit_") {
			return fmt.Errorf("who may read gets %d and %d bytes: %w", code, len(body), err)
		}
		return nil
	})
	// To controller-runtime, a token that cannot be verified is an error of its own.
	for who, tc := range map[string]struct {
		token string
		want  int
	}{
		"nobody": {"", http.StatusUnauthorized}, "a liar": {reader + "x", http.StatusInternalServerError},
		"a stranger": {stranger, http.StatusForbidden},
	} {
		if code, body, err := p.scrape(tc.token, tls.VersionTLS13); err != nil || code != tc.want ||
			strings.Contains(body, "memfit_") {
			t.Errorf("%s gets %d (%v) and %.80q, want %d", who, code, err, body, tc.want)
		}
	}
	for _, old := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		if code, _, err := p.scrape(reader, old); err == nil || !strings.Contains(err.Error(), "protocol version") {
			t.Errorf("%s is answered with %d (%v), want a refusal of the version", tls.VersionName(old), code, err)
		}
	}
	if _, err := get("http://" + p.metrics + "/metrics"); err == nil {
		t.Error("the port answers without TLS")
	}
}

// account is the token of a new ServiceAccount.
func (c *cluster) account(t *testing.T, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	c.create(t, account)
	request := &authenticationv1.TokenRequest{}
	if err := c.client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// scrape asks for the metrics with a token in exactly this version of TLS.
func (p *process) scrape(token string, version uint16) (code int, body string, err error) {
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version} //nolint:gosec // it signs its own, and old versions are the point
	direct := http.Client{
		Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true},
	}
	request, err := http.NewRequest(http.MethodGet, "https://"+p.metrics+"/metrics", nil) //nolint:noctx // the client has a timeout
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := direct.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}
