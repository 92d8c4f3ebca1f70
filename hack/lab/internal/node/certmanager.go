// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/memfit/memfit/hack/lab/internal/netns"
	"github.com/memfit/memfit/hack/lab/internal/run"
)

// startCertManager installs the CRDs, which the build copied from the module, and starts the controllers.
func (n *Node) startCertManager(ctx context.Context) error {
	crds, err := os.ReadFile(filepath.Join(n.Bin, "cert-manager-crds.yaml"))
	if err != nil {
		return fmt.Errorf("reading the CRDs of cert-manager: %w", err)
	}
	if err := n.kubectl(ctx, crds, "apply", "--server-side", "-f", "-"); err != nil {
		return fmt.Errorf("installing the CRDs of cert-manager: %w", err)
	}
	// The Secrets of ClusterIssuers are in this namespace, as in an ordinary installation.
	if err := n.kubectl(ctx, []byte(certManagerNamespace), "apply", "--server-side", "-f", "-"); err != nil {
		return fmt.Errorf("creating the namespace of cert-manager: %w", err)
	}
	if err := n.kubectl(
		ctx, nil, "wait", "--for=condition=Established", "crd/certificates.cert-manager.io",
		"crd/clusterissuers.cert-manager.io", "--timeout=30s",
	); err != nil {
		return err
	}
	if _, err := n.store().Run(n.certManager()); err != nil {
		return err
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return netns.Dial(ctx, n.Layout.NetNS(), address)
		},
	}}
	return n.wait(ctx, time.Minute, []string{"cert-manager"}, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+certManagerHealth+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return fmt.Errorf("reading the readiness of cert-manager: %w", err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("cert-manager is not ready: %s", resp.Status)
		}
		return nil
	})
}

// certManagerHealth is an address on the loopback of the network namespace.
const certManagerHealth = "127.0.0.1:9403"

const certManagerNamespace = `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cert-manager"}}`

func (n *Node) kubectl(ctx context.Context, stdin []byte, args ...string) error {
	cmd := exec.CommandContext(
		ctx, n.binary("kubectl"), append([]string{"--kubeconfig=" + n.Layout.Kubeconfig()}, args...)...,
	)
	cmd.Stdin = bytes.NewReader(stdin)
	return run.Quiet(cmd)
}
