// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"runtime"
	"runtime/metrics"
	"syscall"
	"testing"
	"time"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
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

// The cluster of BenchmarkCycle: 300,000 containers.
const (
	cycleNodes = 5_000
	cyclePods  = 30 // of two containers, on each node
)

// recorded answers for every node with one of a few summaries, so that the benchmark measures memfit and not the making of 5,000.
type recorded struct{ summaries [][]byte }

func (recorded) Name() string { return "recorded" }

func (s recorded) Read(_ context.Context, node usage.Node) (usage.Reading, error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(node.Name))
	r := usage.Reading{Source: "kubelet"}
	err := DecodeSummary(bytes.NewReader(s.summaries[h.Sum32()%uint32(len(s.summaries))]), func(sample memory.Sample) {
		r.Samples = append(r.Samples, sample)
	})
	return r, err
}

// BenchmarkCycle is one look at a large cluster: 5,000 nodes of 30 pods, collected as the manager does, without the network.
func BenchmarkCycle(b *testing.B) {
	source := recorded{}
	read := 0
	for i := range 50 {
		source.summaries = append(source.summaries, typicalSummary(i, cyclePods, false))
		read += len(source.summaries[i]) * cycleNodes / 50
	}
	nodes := make([]usage.Node, cycleNodes)
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("node-%d", i)
	}
	c := &usage.Collector{Source: source, Now: time.Now}
	var cpu time.Duration
	var allocated, peak, cycles uint64
	for b.Loop() {
		runtime.GC()
		cpuBefore, allocatedBefore, heapBefore, containers := cpuTime(), total("/gc/heap/allocs:bytes"), total("/memory/classes/heap/objects:bytes"), 0
		most := heapBefore
		gaps := c.Each(b.Context(), nodes, func(_ usage.Node, r usage.Reading) {
			containers += len(r.Samples)
			if containers%10_000 < 60 {
				most = max(most, total("/memory/classes/heap/objects:bytes"))
			}
		})
		cpu += cpuTime() - cpuBefore
		allocated += total("/gc/heap/allocs:bytes") - allocatedBefore
		peak = max(peak, most-heapBefore)
		cycles++
		if len(gaps) != 0 || containers != 2*cycleNodes*cyclePods {
			b.Fatalf("%d containers and %d gaps", containers, len(gaps))
		}
	}
	perCycle := func(n uint64) memory.Bytes { return memory.Bytes(n / cycles) }
	b.ReportMetric(cpu.Seconds()/float64(cycles), "cpu-s/cycle")
	b.ReportMetric(float64(perCycle(allocated)), "B-allocated/cycle")
	b.ReportMetric(float64(read), "B-read/cycle")
	b.Logf("%d nodes x %d pods x 2 containers: %s CPU, %s read, %s allocated, %s of heap at most, per cycle",
		cycleNodes, cyclePods, (cpu / time.Duration(cycles)).Round(10*time.Millisecond), memory.Bytes(read), perCycle(allocated), memory.Bytes(peak))
}

// cpuTime is what this process used of all cores, garbage collection included.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func total(metric string) uint64 {
	s := []metrics.Sample{{Name: metric}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
