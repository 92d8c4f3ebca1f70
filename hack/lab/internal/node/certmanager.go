// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// startCertManager installs the CRDs, which the build copied out of the module, and runs the controllers.
func (n *Node) startCertManager(ctx context.Context) error {
	crds, err := os.ReadFile(filepath.Join(n.Bin, "cert-manager-crds.yaml"))
	if err != nil {
		return fmt.Errorf("reading the CRDs of cert-manager: %w", err)
	}
	if err := n.kubectl(ctx, crds, "apply", "--server-side", "-f", "-"); err != nil {
		return fmt.Errorf("installing the CRDs of cert-manager: %w", err)
	}
	// ClusterIssuers keep their Secrets there, as in an ordinary installation.
	if err := n.kubectl(ctx, []byte(certManagerNamespace), "apply", "--server-side", "-f", "-"); err != nil {
		return fmt.Errorf("making the namespace of cert-manager: %w", err)
	}
	if err := n.kubectl(ctx, nil, "wait", "--for=condition=Established", "crd/certificates.cert-manager.io", "crd/clusterissuers.cert-manager.io", "--timeout=30s"); err != nil {
		return err
	}
	if _, err := n.store().Run(n.certManager()); err != nil {
		return err
	}
	// It exits within a second when it cannot list what it watches.
	return n.wait(ctx, 30*time.Second, []string{"cert-manager"}, func(context.Context) error { return nil })
}

const certManagerNamespace = `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cert-manager"}}`

func (n *Node) kubectl(ctx context.Context, stdin []byte, args ...string) error {
	cmd := exec.CommandContext(ctx, n.binary("kubectl"), append([]string{"--kubeconfig=" + n.Layout.Kubeconfig()}, args...)...)
	cmd.Stdin = bytes.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", args[0], err, bytes.TrimSpace(out))
	}
	return nil
}
