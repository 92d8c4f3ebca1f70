// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
)

// TestRootsOfTrustWithoutASystem: the image is one file, and a Prometheus outside of the cluster still has to prove who
// it is. Go reads the system's roots once, when a process starts, so this test runs itself in a process that finds
// none.
func TestRootsOfTrustWithoutASystem(t *testing.T) {
	if os.Getenv("SSL_CERT_FILE") == os.DevNull {
		pool, err := x509.SystemCertPool()
		if err != nil || pool.Equal(x509.NewCertPool()) {
			t.Errorf("there are no roots of trust, and the error is %v", err)
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+os.DevNull, "SSL_CERT_DIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
