// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A kubelet sees the token of whoever asks it, and a compromised node keeps it. The manager's own token may evict and
// resize pods, so kubelets get one of another ServiceAccount, which may read nodes/stats and nodes/metrics and nothing
// else. A pod has only one ServiceAccount, and a projected volume only tokens of that one, so the manager asks the API
// server for tokens of the other (TokenRequest). The right for that is limited to this one name in memfit's own
// namespace (config/rbac/usage_reader_token_role.yaml).

// defaultUsageAccount is the ServiceAccount that kubelets see.
const defaultUsageAccount = "memfit-usage-reader"

// tokenLife is what is asked for: short, because a token cannot be taken back. tokenSpare is how long before its end
// another is asked for.
const (
	tokenLife  = time.Hour
	tokenSpare = 15 * time.Minute
	// tokenTimeout is for one request.
	tokenTimeout = 10 * time.Second
)

// tokens are tokens of a ServiceAccount, renewed in time. Safe for concurrent use.
type tokens struct {
	request func(context.Context) (token string, ends time.Time, err error)
	now     func() time.Time

	mu    sync.Mutex
	token string
	ends  time.Time
}

// requestTokens asks the API server for tokens of a ServiceAccount.
func requestTokens(config *rest.Config, client *http.Client, namespace, account string) (*tokens, error) {
	typed, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("preparing to ask for tokens of ServiceAccount %s/%s: %w", namespace, account, err)
	}
	life := int64(tokenLife.Seconds())
	return &tokens{now: time.Now, request: func(ctx context.Context) (string, time.Time, error) {
		ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
		defer cancel()
		answer, err := typed.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &life},
		}, metav1.CreateOptions{})
		if err != nil {
			return "", time.Time{}, fmt.Errorf("asking for a token of ServiceAccount %s/%s, which is all that kubelets may "+
				"see: %w. It comes with config/rbac",
				namespace, account, err)
		}
		return answer.Status.Token, answer.Status.ExpirationTimestamp.Time, nil
	}}, nil
}

// get is a token that is good for a while. One that is still good is used when the API server gives no other.
func (t *tokens) get(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if now.Before(t.ends.Add(-tokenSpare)) {
		return t.token, nil
	}
	token, ends, err := t.request(ctx)
	switch {
	case err == nil:
		t.token, t.ends = token, ends
	case now.Before(t.ends): // the old one will do, and the next reading asks again
	default:
		return "", err
	}
	return t.token, nil
}

// asUsageReader is config with another identity: what proves that it is the manager is taken out, and each request gets
// a token of the other ServiceAccount. Requests without one are not sent.
func asUsageReader(config *rest.Config, t *tokens) *rest.Config {
	anonymous := rest.AnonymousClientConfig(config)
	anonymous.Wrap(func(next http.RoundTripper) http.RoundTripper { return bearer{t, next} })
	return anonymous
}

// bearer adds a token to requests.
type bearer struct {
	tokens *tokens
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := b.tokens.get(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return b.next.RoundTrip(r)
}
