// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bytes"
	"encoding/json"
	"testing"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/memfit/memfit/internal/memory"
)

// BenchmarkDecodeSummary compares one pass over a summary with the ordinary ways to decode it.
func BenchmarkDecodeSummary(b *testing.B) {
	for name, everything := range map[string]bool{"cpu-and-memory": false, "everything": true} {
		in := typicalSummary(7, 30, everything)
		for how, decode := range map[string]func() int{
			"memfit": func() (n int) {
				if err := DecodeSummary(bytes.NewReader(in), func(memory.Sample) { n++ }); err != nil {
					b.Fatal(err)
				}
				return n
			},
			"encoding-json": func() int {
				var s stats.Summary
				if err := json.NewDecoder(bytes.NewReader(in)).Decode(&s); err != nil {
					b.Fatal(err)
				}
				return 2 * len(s.Pods)
			},
		} {
			b.Run(name+"/"+how, func(b *testing.B) {
				b.SetBytes(int64(len(in)))
				b.ReportAllocs()
				for b.Loop() {
					if n := decode(); n != 60 {
						b.Fatal(n)
					}
				}
			})
		}
	}
}
