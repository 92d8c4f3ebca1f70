// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// api is a minimal client of the API server. With it, the lab needs no Kubernetes client library.
type api struct {
	url    string
	client *http.Client
}

// kubeconfig has the fields that newAPI reads from the lab's own kubeconfig.
type kubeconfig struct {
	Clusters []struct {
		Cluster struct {
			Server string `json:"server"`
			CA     []byte `json:"certificate-authority-data"`
		} `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		User struct {
			Cert []byte `json:"client-certificate-data"`
			Key  []byte `json:"client-key-data"`
		} `json:"user"`
	} `json:"users"`
}

// newAPI returns a client with the administrator's kubeconfig, which users of the machine have as well.
func newAPI(path string) (*api, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	var config kubeconfig
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("parsing %s: %w", path, err)
	}
	if len(config.Clusters) == 0 || len(config.Users) == 0 {
		return nil, fmt.Errorf("%s has no cluster or no user: run `lab down`, then `lab up`", path)
	}
	cluster, user := config.Clusters[0].Cluster, config.Users[0].User
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cluster.CA)
	cert, err := tls.X509KeyPair(user.Cert, user.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates in %s: %w", path, err)
	}
	return &api{url: cluster.Server, client: &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		},
	}}, nil
}

func (a *api) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s returned %s", path, resp.Status)
	}
	return body, nil
}

// ready returns nil if the API server is ready, otherwise why it is not.
func (a *api) ready(ctx context.Context) error {
	_, err := a.get(ctx, "/readyz")
	return err
}

// nodeReady returns nil if pods can be scheduled to the node, otherwise why they cannot.
func (a *api) nodeReady(ctx context.Context, node string) error {
	body, err := a.get(ctx, "/api/v1/nodes/"+node)
	if err != nil {
		return err
	}
	return parseNodeReady(body)
}

func parseNodeReady(body []byte) error {
	var node struct {
		Spec struct {
			Taints []struct{ Key string }
		}
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := json.Unmarshal(body, &node); err != nil {
		return fmt.Errorf("parsing the node: %w", err)
	}
	for _, c := range node.Status.Conditions {
		if c.Type != "Ready" {
			continue
		}
		if c.Status != "True" {
			return errors.New("the node is not ready: " + c.Message)
		}
		// The taint is removed a moment after the condition changes. Until then no pod is scheduled.
		for _, taint := range node.Spec.Taints {
			if taint.Key == "node.kubernetes.io/not-ready" {
				return errors.New("the node is ready, but still has its not-ready taint")
			}
		}
		return nil
	}
	return errors.New("the node has not reported yet")
}

// waitFor repeats check until it returns nil. After limit it returns the last error of check.
func waitFor(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return err // interrupted
			}
			return fmt.Errorf("still failing after %s: %w", limit, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
