// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

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
			&tokens{now: time.Now, request: func(context.Context) (string, time.Time, error) {
				given++
				return others, time.Now().Add(tokenLife), nil
			}}), kubelet.Options{NoCounters: true})
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
		&tokens{now: time.Now, request: func(context.Context) (string, time.Time, error) {
			return "", time.Time{}, errors.New("serviceaccounts/token is forbidden")
		}}), kubelet.Options{NoCounters: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = source.Read(t.Context(), usage.Node{Name: "n", Address: host, Port: int32(number)})
	if err == nil || !strings.Contains(err.Error(), "serviceaccounts/token is forbidden") || asked {
		t.Errorf("asked %t, error %v; want no request, and why", asked, err)
	}
}

func TestTokensAreRenewedInTime(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var fail error
	n := 0
	tokens := &tokens{now: func() time.Time { return now }, request: func(context.Context) (string, time.Time, error) {
		if fail != nil {
			return "", time.Time{}, fail
		}
		n++
		return strconv.Itoa(n), now.Add(tokenLife), nil
	}}
	refused := errors.New("refused")
	for _, step := range []struct {
		after time.Duration
		fail  error
		want  string
	}{
		{0, nil, "1"}, {44 * time.Minute, nil, "1"}, {2 * time.Minute, nil, "2"}, {50 * time.Minute, refused, "2"},
		{5 * time.Minute, refused, "2"},
		{6 * time.Minute, refused, ""}, {0, nil, "3"},
	} {
		now, fail = now.Add(step.after), step.fail
		got, err := tokens.get(t.Context())
		if got != step.want || (err != nil) != (step.want == "") {
			t.Errorf("at %s: %q and error %v, want %q", now.Format(time.TimeOnly), got, err, step.want)
		}
	}
}
