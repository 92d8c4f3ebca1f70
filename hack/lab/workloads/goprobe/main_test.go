// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestSize(t *testing.T) {
	for in, want := range map[string]size{"0": 0, "512": 512, "64Ki": 64 << 10, "100Mi": 100 << 20, "1Gi": 1 << 30} {
		var got size
		if err := got.Set(in); err != nil || got != want {
			t.Errorf("Set(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "Mi", "-1", "1.5Gi", "9999999999Gi", "100M"} {
		var got size
		if err := got.Set(in); err == nil {
			t.Errorf("Set(%q) = %d, want an error", in, got)
		}
	}
}
