// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../../../../"

// TestPreview: settings with reasons, kills, the decision and the page, from the files of this repository.
func TestPreview(t *testing.T) {
	page := filepath.Join(t.TempDir(), "new", "page.html")
	var out bytes.Buffer
	err := run(&out, root+"hack/demo/manifests", root+"test/recordings/node-leak-3.csv.gz", page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Deployment memfit-demo/bursts, container app: NODE_OPTIONS: --max-old-space-size=189 (75 % of 256Mi",
		"Deployment memfit-demo/batches, container app: MALLOC_ARENA_MAX=2",
		"Deployment memfit-demo/cache, container app: GOMEMLIMIT=120795955 (90 % of 128Mi)",
		"3 Deployments change",
		"OOMKilled: Container app was OOM-killed at its limit of 200Mi",
		"Increase limit 200Mi to ", "Next: Memory drifts (Climb)",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in what it prints:\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "  OOMKilled: "); n != 3 {
		t.Errorf("%d kills are printed, want 3", n)
	}
	html, err := os.ReadFile(page)
	if err != nil || !bytes.Contains(html, []byte("<svg")) {
		t.Errorf("the page has no picture: %v", err)
	}
}

// TestNoRecording: what cannot be replayed is named.
func TestNoRecording(t *testing.T) {
	var out bytes.Buffer
	page := filepath.Join(t.TempDir(), "page.html")
	err := run(&out, root+"hack/demo/manifests", root+"test/recordings/labels.csv", page)
	if err == nil || !strings.Contains(err.Error(), "labels.csv") {
		t.Errorf("got %v", err)
	}
}
