// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/memfit/memfit/internal/usage"
	"github.com/memfit/memfit/internal/usage/kubelet"
)

// TestKubeletsNeverSeeTheManagersToken reads a kubelet with everything a rest.Config can hold, and finds only the other
// account's token.
func TestKubeletsNeverSeeTheManagersToken(t *testing.T) {
	const own, others = "the-managers-own-token", "the-usage-readers-token"
	var mu sync.Mutex
	var seen []http.Header
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Header.Clone())
		_, _ = w.Write([]byte(`{"node":{},"pods":[]}`))
	}))
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(address.Host)
	number, _ := strconv.Atoi(port)
	node := usage.Node{Name: "n", Address: host, Port: int32(number)}

	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for how, config := range map[string]*rest.Config{
		"a file":     {BearerTokenFile: file},
		"a token":    {BearerToken: own},
		"both":       {BearerToken: own, BearerTokenFile: file},
		"a password": {Username: "manager", Password: own},
		"another's":  {BearerToken: own, Impersonate: rest.ImpersonationConfig{UserName: own}},
	} {
		config.CAData = ca
		given := 0
		source, err := kubelet.New(asUsageReader(config,
			tokenSource(func() (*oauth2.Token, error) {
				given++
				return &oauth2.Token{AccessToken: others, Expiry: time.Now().Add(tokenLife)}, nil
			})), kubelet.Options{NoCounters: true})
		if err != nil {
			t.Fatal(err)
		}
		seen = nil
		for range 2 {
			if _, err := source.Read(t.Context(), node); err != nil {
				t.Errorf("%s: %v", how, err)
			}
		}
		if given != 1 || len(seen) != 2 {
			t.Errorf("%s: %d tokens for %d requests, want one for two", how, given, len(seen))
		}
		for _, header := range seen {
			for name, values := range header {
				if strings.Contains(strings.Join(values, " "), own) || name == "Impersonate-User" {
					t.Errorf("%s: the kubelet saw the manager's own %s", how, name)
				}
			}
			if got := header.Get("Authorization"); got != "Bearer "+others {
				t.Errorf("%s: the kubelet saw %q", how, got)
			}
		}
	}
}

// TestWithoutATokenNothingIsSent: no right to ask for tokens is no reason to show the manager's own.
func TestWithoutATokenNothingIsSent(t *testing.T) {
	asked := false
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	host, port, _ := net.SplitHostPort(strings.TrimPrefix(server.URL, "https://"))
	number, _ := strconv.Atoi(port)
	config := &rest.Config{
		BearerToken: "own",
		TLSClientConfig: rest.TLSClientConfig{
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
	}
	source, err := kubelet.New(asUsageReader(config,
		tokenSource(func() (*oauth2.Token, error) {
			return nil, errors.New("serviceaccounts/token is forbidden")
		})), kubelet.Options{NoCounters: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = source.Read(t.Context(), usage.Node{Name: "n", Address: host, Port: int32(number)})
	if err == nil || !strings.Contains(err.Error(), "serviceaccounts/token is forbidden") || asked {
		t.Errorf("asked %t, error %v; want no request, and why", asked, err)
	}
}

// TestTokensAreRenewedInTime: a token is used until a quarter of an hour before its end, and longer while the API
// server gives no other.
func TestTokensAreRenewedInTime(t *testing.T) {
	var given atomic.Int64
	var refused atomic.Bool
	ends := time.Now().Add(tokenLife)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refused.Load() {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		token := strconv.Itoa(int(given.Add(1)))
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":%q,`+
			`"expirationTimestamp":%q}}`, token, ends.UTC().Format(time.RFC3339))
	}))
	defer server.Close()
	source, err := requestTokens(&rest.Config{Host: server.URL}, server.Client(), "memfit", "usage-reader")
	if err != nil {
		t.Fatal(err)
	}
	cached := transport.NewCachedTokenSource(source)
	for _, step := range []struct {
		name string
		ends time.Duration
		want string
	}{
		{"the first is about to end", tokenSpare - time.Minute, "1"},
		{"so there is another", tokenSpare + time.Minute, "2"},
		{"which lasts", tokenSpare - time.Minute, "2"},
	} {
		ends = time.Now().Add(step.ends)
		if token, err := cached.Token(); err != nil || token.AccessToken != step.want {
			t.Errorf("%s: %+v, %v; want %s", step.name, token, err, step.want)
		}
	}
	refused.Store(true)
	if _, err := source(); err == nil || !strings.Contains(err.Error(), "ServiceAccount memfit/usage-reader") {
		t.Errorf("a refusal gives %v", err)
	}
}
