// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/test/tree"
)

// TestTheManagerWaitsForItsCluster: without an API server, and without memfit's CRDs, the manager stays, is alive and
// not ready, and says what it waits for. It ended before, and was started again later and later.
func TestTheManagerWaitsForItsCluster(t *testing.T) {
	c := newCluster(t, func(e *envtest.Environment) { e.CRDDirectoryPaths, e.ErrorIfCRDPathMissing = nil, false })
	away := address(t)
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var there string
	for _, cluster := range config.Clusters {
		there, cluster.Server = strings.TrimPrefix(cluster.Server, "https://"), "https://"+away
	}
	c.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, c.kubeconfig); err != nil {
		t.Fatal(err)
	}
	p := c.start(t)
	p.waits(t, "the API server")

	listener, err := net.Listen("tcp", away) //nolint:noctx // closed with the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go carry(listener, there)
	p.waits(t, "memfit's CRDs")

	crds, err := filepath.Glob(filepath.Join(tree.Root(), "config", "crd", "bases", "*.yaml"))
	if err != nil || len(crds) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	for _, path := range crds {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var crd unstructured.Unstructured
		if err := yaml.Unmarshal(text, &crd.Object); err != nil {
			t.Fatal(err)
		}
		c.create(t, &crd)
	}
	p.ready(t)
}

// waits until the manager is alive, not ready, and waits for this.
func (p *process) waits(t *testing.T, what string) {
	t.Helper()
	eventually(t, 60*time.Second, func() error {
		if _, err := get("http://" + p.health + "/healthz"); err != nil {
			return err
		}
		_, err := get("http://" + p.health + "/readyz")
		if err == nil {
			return errors.New("it is ready")
		}
		if !strings.Contains(err.Error(), "waiting for "+what) {
			return fmt.Errorf("it does not wait for %s: %w", what, err)
		}
		return nil
	})
}

// carry passes connections on.
func carry(from net.Listener, to string) {
	for {
		in, err := from.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", to) //nolint:noctx // of a server on this machine
		if err != nil {
			_ = in.Close()
			continue
		}
		go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
		go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
	}
}
