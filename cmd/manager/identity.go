// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/oauth2"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// A kubelet sees the token of its clients, and a compromised node may keep it. The manager's own token may evict and
// resize pods, so kubelets get a token of another ServiceAccount, which may only read nodes/stats and nodes/metrics. A
// pod has only one ServiceAccount, and a projected volume only tokens of that one, so the manager requests tokens of
// the other from the API server (TokenRequest). It may do so for this one name in memfit's own namespace only
// (config/rbac/usage_reader_token_role.yaml).

// defaultUsageAccount is the ServiceAccount whose tokens kubelets get.
const defaultUsageAccount = "memfit-usage-reader"

const (
	tokenLife    = time.Hour        // short, because a token cannot be revoked
	tokenSpare   = 15 * time.Minute // how long before its expiry a token is renewed
	tokenTimeout = 10 * time.Second // of one request
)

// tokenSource returns tokens of a ServiceAccount.
type tokenSource func() (*oauth2.Token, error)

// Token implements oauth2.TokenSource.
func (s tokenSource) Token() (*oauth2.Token, error) { return s() }

// requestTokens returns a source that requests a new token of a ServiceAccount in each call.
func requestTokens(config *rest.Config, client *http.Client, namespace, account string) (tokenSource, error) {
	clientset, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("preparing to request tokens of ServiceAccount %s/%s: %w", namespace, account, err)
	}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLife.Seconds()))},
	}
	return func() (*oauth2.Token, error) {
		ctx, cancel := context.WithTimeout(context.Background(), tokenTimeout)
		defer cancel()
		accounts := clientset.CoreV1().ServiceAccounts(namespace)
		answer, err := accounts.CreateToken(ctx, account, request, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("requesting a token of ServiceAccount %s/%s for kubelets: %w. Install config/rbac, "+
				"which creates it", namespace, account, err)
		}
		return &oauth2.Token{
			AccessToken: answer.Status.Token, Expiry: answer.Status.ExpirationTimestamp.Add(-tokenSpare),
		}, nil
	}, nil
}

// asUsageReader returns config with tokens of the other ServiceAccount instead of the manager's credentials. client-go
// renews an expired token; if that fails, it uses the old token. Without a first token, it sends no request.
func asUsageReader(config *rest.Config, tokens oauth2.TokenSource) *rest.Config {
	anonymous := rest.AnonymousClientConfig(config)
	anonymous.Wrap(transport.TokenSourceWrapTransport(transport.NewCachedTokenSource(tokens)))
	return anonymous
}
