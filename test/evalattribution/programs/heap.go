// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Command heap fills its heap, drops most of it, and answers with its runtime's counters; "free" first releases memory.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

var kept [][]byte

func main() {
	fill()
	runtime.GC()
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if in.Text() == "free" {
			debug.FreeOSMemory()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println(m.HeapInuse, m.HeapIdle-m.HeapReleased, m.HeapReleased, m.HeapAlloc, len(kept), live())
	}
}

// live returns the live heap of the last collection; 0 before Go 1.21, which does not report it.
func live() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if metrics.Read(sample); sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

func fill() {
	var all [][]byte
	for i := 0; i < 40000; i++ {
		b := make([]byte, 10000)
		for j := 0; j < len(b); j += 1024 {
			b[j] = 1
		}
		if i%20 == 0 {
			kept = append(kept, b)
		}
		all = append(all, b)
	}
	runtime.KeepAlive(all)
}
