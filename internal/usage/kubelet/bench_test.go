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

func BenchmarkDecodeSummary(b *testing.B) {
	in := typicalSummary(7, 30)
	b.Run("memfit", func(b *testing.B) {
		b.SetBytes(int64(len(in)))
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			if err := DecodeSummary(bytes.NewReader(in), func(memory.Sample) { n++ }); err != nil || n != 60 {
				b.Fatal(n, err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(in)))
		b.ReportAllocs()
		for b.Loop() {
			var s stats.Summary
			if err := json.NewDecoder(bytes.NewReader(in)).Decode(&s); err != nil || len(s.Pods) != 30 {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json-minimal", func(b *testing.B) {
		b.SetBytes(int64(len(in)))
		b.ReportAllocs()
		for b.Loop() {
			var s struct {
				Pods []struct {
					PodRef     stats.PodReference
					Containers []struct {
						Name      string
						StartTime string
						Memory    struct {
							Time                      string
							RSSBytes, WorkingSetBytes *uint64
						}
					}
				}
			}
			if err := json.NewDecoder(bytes.NewReader(in)).Decode(&s); err != nil || len(s.Pods) != 30 {
				b.Fatal(err)
			}
		}
	})
}
