// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
)

// The cluster of the cycle benchmarks: 300,000 containers.
const (
	cycleNodes = 5_000
	cyclePods  = 30 // of two containers, on each node
	// summariesMade is how many different answers there are.
	summariesMade = 50
)

func madeSummaries() [][]byte {
	all := make([][]byte, summariesMade)
	for i := range all {
		all[i] = typicalSummary(i, cyclePods, false)
	}
	return all
}

// recorded answers for every node with one of a few summaries, so that the benchmark measures memfit and not the making
// of 5,000.
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

// BenchmarkCycle is one cycle over a large cluster: 5,000 nodes of 30 pods, collected as the manager does, without the
// network.
func BenchmarkCycle(b *testing.B) {
	nodes := make([]usage.Node, cycleNodes)
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("node-%d", i)
	}
	benchmarkCycle(b, recorded{madeSummaries()}, nodes)
}

// BenchmarkCycleTLS is the same with everything that lies between: 5,000 HTTPS servers in a process of their own, each
// on a port of its own, asked with a token and verified. Only the CPU of the asking side is counted.
func BenchmarkCycleTLS(b *testing.B) {
	ca, nodes := startKubelets(b)
	token := b.TempDir() + "/token"
	if err := os.WriteFile(token, []byte("a-service-account-token"), 0o600); err != nil {
		b.Fatal(err)
	}
	source, err := New(&rest.Config{BearerTokenFile: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	benchmarkCycle(b, source, nodes)
}

func benchmarkCycle(b *testing.B, source usage.Source, nodes []usage.Node) {
	started := time.Now() // the summaries were measured a second before
	now := func() time.Time { return measured.Add(time.Second + time.Since(started)) }
	c := &usage.Collector{Sources: []usage.Source{source}, Now: now}
	var cpu, took time.Duration
	var allocated, cycles uint64
	var heap, rss memory.Bytes
	for b.Loop() {
		runtime.GC()
		forgetPeak(b)
		began, cpuBefore, allocatedBefore, containers := time.Now(), cpuTime(), total("/gc/heap/allocs:bytes"), 0
		gaps := c.Each(b.Context(), nodes, func(_ usage.Node, r usage.Reading) {
			containers += len(r.Samples)
			if containers%10_000 < 60 {
				heap = max(heap, memory.Bytes(total("/memory/classes/heap/objects:bytes")))
			}
		})
		took += time.Since(began)
		cpu += cpuTime() - cpuBefore
		allocated += total("/gc/heap/allocs:bytes") - allocatedBefore
		rss = max(rss, peakRSS(b))
		cycles++
		if len(gaps) != 0 || containers != 2*cycleNodes*cyclePods {
			b.Fatalf("%d containers and %d gaps, the first: %v", containers, len(gaps), gaps[:min(len(gaps), 1)])
		}
	}
	b.ReportMetric(cpu.Seconds()/float64(cycles), "cpu-s/cycle")
	b.ReportMetric(float64(allocated/cycles), "B-allocated/cycle")
	b.ReportMetric(float64(heap), "B-peak-heap")
	b.ReportMetric(float64(rss), "B-peak-rss")
	each := func(d time.Duration) time.Duration { return (d / time.Duration(cycles)).Round(10 * time.Millisecond) }
	b.Logf("%d nodes x %d pods x 2 containers, per cycle: %s CPU in %s, %s allocated; at most %s of heap and %s RSS",
		cycleNodes, cyclePods, each(cpu), each(took), memory.Bytes(allocated/cycles), heap, rss)
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

// forgetPeak lets the kernel measure the highest RSS anew.
func forgetPeak(b *testing.B) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Fatal(err)
	}
}

// peakRSS is the highest RSS since forgetPeak.
func peakRSS(b *testing.B) memory.Bytes {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		b.Fatal("no VmHWM in /proc/self/status")
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return memory.Bytes(kib) * memory.KiB
}

// asKubelets in the environment makes the test binary serve summaries instead of running tests.
const asKubelets = "MEMFIT_TEST_AS_KUBELETS"

func TestMain(m *testing.M) {
	if os.Getenv(asKubelets) == "" {
		os.Exit(m.Run())
	}
	if err := serveKubelets(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// kubelets is what the serving process writes to its standard output: how to trust it and where it listens.
type kubelets struct {
	CA    []byte
	Ports []int32
}

// serveKubelets serves until its standard input ends, which it does when the benchmark is over, however it ended.
func serveKubelets() error {
	summaries := madeSummaries()
	first := httptest.NewTLSServer(http.NotFoundHandler()) // brings a certificate for 127.0.0.1
	defer first.Close()
	said := kubelets{CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: first.Certificate().Raw})}
	for i := range cycleNodes {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		said.Ports = append(said.Ports, int32(l.Addr().(*net.TCPAddr).Port))
		answer := summaries[i%len(summaries)]
		server := &http.Server{ReadHeaderTimeout: time.Minute,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") == "" {
					http.Error(w, "who are you?", http.StatusUnauthorized)
					return
				}
				_, _ = w.Write(answer)
			})}
		go func() { _ = server.Serve(tls.NewListener(l, first.TLS)) }()
	}
	if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// startKubelets starts them in a process of their own.
func startKubelets(b *testing.B) (ca []byte, nodes []usage.Node) {
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asKubelets+"=yes")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	var said kubelets
	if err := json.NewDecoder(out).Decode(&said); err != nil {
		b.Fatalf("the kubelets do not start: %v", err)
	}
	for i, port := range said.Ports {
		nodes = append(nodes, usage.Node{Name: fmt.Sprintf("node-%d", i), Address: "127.0.0.1", Port: port})
	}
	return said.CA, nodes
}
