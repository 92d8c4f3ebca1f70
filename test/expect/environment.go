// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/memfit/memfit/test/tree"
)

// APIServer starts etcd and a kube-apiserver with memfit's CRDs for one test. KUBEBUILDER_ASSETS is the folder of their
// binaries; `make test` builds them and sets it. If it is unset, the test fails instead of being skipped unnoticed.
func APIServer(t *testing.T, edits ...func(*envtest.Environment)) *rest.Config {
	t.Helper()
	config, stop, err := StartAPIServer(edits...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	return config
}

// StartAPIServer is like APIServer, but the caller stops the API server.
func StartAPIServer(edits ...func(*envtest.Environment)) (config *rest.Config, stop func() error, err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return nil, nil, errors.New("KUBEBUILDER_ASSETS is not set, and this test needs an API server: run `make test`, or " +
			"`export KUBEBUILDER_ASSETS=$(go -C hack/lab run . binaries --only etcd,kube-apiserver,kubectl --print-dir)`")
	}
	env := &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join(tree.Root(), "config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
		ControlPlaneStartTimeout: time.Minute, ControlPlaneStopTimeout: time.Minute,
	}
	for _, edit := range edits {
		edit(env)
	}
	if config, err = env.Start(); err != nil {
		return nil, nil, fmt.Errorf("starting the API server: %w", err)
	}
	config.QPS, config.Burst = 500, 1000
	return config, env.Stop, nil
}
