// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"testing"

	"github.com/memfit/memfit/hack/lab/internal/uml"
)

func TestSecondNode(t *testing.T) {
	for name, tc := range map[string]struct {
		node, with string
		want       *uml.Variants
		wantErr    bool
	}{
		"nothing requested":      {},
		"the node":               {node: "cgroup2", want: &uml.Variants{}},
		"with variants":          {node: "cgroup2", with: "swap", want: &uml.Variants{Swap: true}},
		"another kind":           {node: "cgroup3", wantErr: true},
		"variants without node":  {with: "swap", wantErr: true},
		"an unknown variant":     {node: "cgroup2", with: "swop", wantErr: true},
		"a bad variant, no node": {with: "swop", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"LAB_NODE": tc.node, "LAB_NODE_WITH": tc.with}
			got, err := secondNode(func(key string) string { return env[key] })
			if (err != nil) != tc.wantErr || (got != nil) != (tc.want != nil) {
				t.Fatalf("got %+v, %v", got, err)
			}
			if got != nil && got.variants != *tc.want {
				t.Errorf("variants %+v", got.variants)
			}
		})
	}
}
