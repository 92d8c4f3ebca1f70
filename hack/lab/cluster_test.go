// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/memfit/memfit/hack/lab/internal/layout"
)

func TestChooseMode(t *testing.T) {
	l := layout.Layout{Cache: "/cache", State: "/state"}
	tests := map[string]struct {
		env            map[string]string
		want           mode
		wantKubeconfig string
	}{
		"nothing set: the lab": {env: nil, want: modeLab, wantKubeconfig: "/state/kubeconfig"},
		"an existing cluster": {
			env: map[string]string{"KUBECONFIG": "/home/me/.kube/config"}, want: modeExisting,
			wantKubeconfig: "/home/me/.kube/config",
		},
		"KIND=1": {
			env: map[string]string{"KIND": "1"}, want: modeKind, wantKubeconfig: "/cache/kind.kubeconfig",
		},
		"KIND=0 means the lab": {
			env: map[string]string{"KIND": "0"}, want: modeLab, wantKubeconfig: "/state/kubeconfig",
		},
		"an existing cluster has precedence over kind": {
			env: map[string]string{"KUBECONFIG": "/k", "KIND": "1"}, want: modeExisting, wantKubeconfig: "/k",
		},
		"the lab's own kubeconfig still means the lab": {
			env: map[string]string{"KUBECONFIG": "/state/kubeconfig"}, want: modeLab, wantKubeconfig: "/state/kubeconfig",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			getenv := func(key string) string { return tc.env[key] }
			got := chooseMode(getenv, l)
			if got != tc.want {
				t.Errorf("chooseMode() = %s, want %s", got, tc.want)
			}
			if path := got.kubeconfig(getenv, l); path != tc.wantKubeconfig {
				t.Errorf("kubeconfig() = %s, want %s", path, tc.wantKubeconfig)
			}
		})
	}
}

// TestKindConfigIsDocumented: users who create the cluster themselves get the same configuration.
func TestKindConfigIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/install.md")
	if err != nil {
		t.Fatal(err)
	}
	const indent = "\n   "
	want := strings.TrimRight(indent+strings.ReplaceAll(kindConfig, "\n", indent), " \n")
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/guide/install.md does not have this configuration for kind:%s", want)
	}
}
