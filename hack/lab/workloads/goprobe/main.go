// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command goprobe is a Go workload for tests and demonstrations of memory limits. It reports the memory settings of the
// Go runtime (GOMEMLIMIT, GOGC) and its heap, and can hold, leak or churn memory.
//
//	goprobe -hold 100Mi                  hold 100 MiB
//	goprobe -hold 90Mi -hold-over 1m     grow to 90 MiB over a minute
//	goprobe -leak 10Mi                   leak 10 MiB every second, until it is killed
//	goprobe -churn 200Mi                 allocate 200 MiB of garbage every second
//	goprobe -burst 30Mi -burst-every 2m  allocate 30 MiB for 3 s every two minutes
//	goprobe -hold 230Mi -map-file 51Mi   also read a mapped file again and again: with a limit of 256Mi, it stalls
//	goprobe -read-file 600Mi             read a file again and again: page cache fills the limit, and nothing stalls
//
// GET /stats returns JSON. POST /hold?size=100Mi replaces the held memory. GET /api reads the version of the Kubernetes
// API server with the pod's own token, as an operator in this pod would.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	listen := flag.String("listen", ":8080", "address of the HTTP server")
	hold := sizeFlag("hold", "memory to hold, for example 100Mi")
	holdOver := flag.Duration("hold-over", 0, "time over which the held memory grows; 0: allocate all immediately")
	leak := sizeFlag("leak", "memory to leak every second")
	churn := sizeFlag("churn", "garbage to allocate every second")
	burst := sizeFlag("burst", "memory to allocate repeatedly and to release again")
	burstEvery := flag.Duration("burst-every", time.Minute, "time between two bursts")
	burstFor := flag.Duration("burst-for", 3*time.Second, "how long a burst lasts")
	mapFile := sizeFlag(
		"map-file", "size of a file to write, map into memory and read again and again",
	)
	readFile := sizeFlag("read-file", "size of a file to write and read again and again")
	walkRandom := flag.Bool("walk-random", false, "read pages of the mapped file in random order")
	fileDir := flag.String("file-dir", os.TempDir(), "directory for these files; it must not be a tmpfs")
	pause := flag.Duration("pause", 10*time.Millisecond, "time between two passes over a file")
	flag.Parse()

	// A container's first process ignores SIGTERM unless it has a handler. Without one, it would run until the end of the
	// pod's grace period.
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	go func() { <-end; os.Exit(0) }()

	p := &probe{pause: *pause}
	if err := p.files(*fileDir, int64(*mapFile), int64(*readFile), *walkRandom); err != nil {
		slog.Error("Preparing files", "err", err)
		os.Exit(1)
	}
	if *holdOver > 0 {
		go p.holdSlowly(int64(*hold), *holdOver)
	} else {
		p.hold(int64(*hold))
	}
	go p.everySecond(int64(*leak), int64(*churn))
	if *burst > 0 {
		go burstOf(int64(*burst), *burstEvery, *burstFor)
	}
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stdout, nil)))
	slog.Info("Started", "stats", p.stats())

	mux := http.NewServeMux()
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) { answer(w, p.stats()) })
	mux.HandleFunc("POST /hold", func(w http.ResponseWriter, r *http.Request) {
		var s size
		if err := s.Set(r.FormValue("size")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		p.hold(int64(s))
		answer(w, p.stats())
	})
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, _ *http.Request) {
		version, err := apiVersion()
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		fmt.Fprintln(w, version)
	})
	if err := http.ListenAndServe(*listen, mux); err != nil {
		slog.Error("Stopped", "err", err)
		os.Exit(1)
	}
}

// probe holds memory and counts passes over files.
type probe struct {
	mu        sync.Mutex
	kept      []byte
	leaked    [][]byte
	rounds    int           // passes over files
	roundTook time.Duration // the duration of the last pass
	pause     time.Duration // between two passes
}

// files starts to read files. mapped and read are their sizes in bytes; 0: no file.
func (p *probe) files(dir string, mapped, read int64, random bool) error {
	if mapped > 0 {
		if err := p.mapped(dir, mapped, random); err != nil {
			return err
		}
	}
	if read > 0 {
		return p.readThrough(dir, read)
	}
	return nil
}

func (p *probe) hold(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = touched(n)
}

// holdSlowly holds n bytes, which it allocates first, to avoid copies, and then touches in steps over the duration.
func (p *probe) holdSlowly(n int64, over time.Duration) {
	const step = 64 << 10
	kept := make([]byte, n)
	p.mu.Lock()
	p.kept = kept
	p.mu.Unlock()
	begin := time.Now()
	for at := int64(0); at < n; at += step {
		time.Sleep(time.Until(begin.Add(time.Duration(float64(over) * float64(at) / float64(n)))))
		touch(kept[at:min(at+step, n)])
	}
}

func (p *probe) everySecond(leak, churn int64) {
	for range time.Tick(time.Second) {
		if leak > 0 {
			p.mu.Lock()
			p.leaked = append(p.leaked, touched(leak))
			p.mu.Unlock()
		}
		for made := int64(0); made < churn; made += 1 << 20 {
			runtime.KeepAlive(touched(1 << 20))
		}
	}
}

// burstOf takes n bytes repeatedly. It maps them, because the Go runtime would not release them immediately.
func burstOf(n int64, every, last time.Duration) {
	for range time.Tick(every) {
		b, err := syscall.Mmap(-1, 0, int(n), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			slog.Error("Taking memory for a burst", "err", err)
			continue
		}
		touch(b)
		time.Sleep(last)
		if err := syscall.Munmap(b); err != nil {
			slog.Error("Releasing memory of a burst", "err", err)
		}
	}
}

// touched returns resident memory: the kernel allocates pages only when they are written.
func touched(n int64) []byte {
	b := make([]byte, n)
	touch(b)
	return b
}

func touch(b []byte) {
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
}

// stats is the response to GET /stats. Sizes are bytes.
type stats struct {
	GoVersion  string `json:"goVersion"`
	GoMemLimit *int64 `json:"goMemLimit"` // null: no limit
	GoGC       uint64 `json:"gogc"`       // 0: off
	GoMaxProcs int    `json:"goMaxProcs"`
	HeapLive   uint64 `json:"heapLive"`
	Total      uint64 `json:"total"` // all memory of the runtime
	GCCycles   uint64 `json:"gcCycles"`
	Held       int    `json:"held"`
	Leaked     int    `json:"leaked"`
	Rounds     int    `json:"rounds"`    // passes over files
	RoundTook  string `json:"roundTook"` // the duration of the last pass
}

func (p *probe) stats() stats {
	samples := []metrics.Sample{
		{Name: "/gc/gogc:percent"}, {Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(samples)
	p.mu.Lock()
	defer p.mu.Unlock()
	s := stats{
		GoVersion: runtime.Version(), GoMaxProcs: runtime.GOMAXPROCS(0), GoGC: samples[0].Value.Uint64(),
		HeapLive: samples[1].Value.Uint64(), Total: samples[2].Value.Uint64(), GCCycles: samples[3].Value.Uint64(),
		Held: len(p.kept), Rounds: p.rounds, RoundTook: p.roundTook.String(),
	}
	if s.GoGC == math.MaxUint64 {
		s.GoGC = 0
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 { // -1 only reads
		s.GoMemLimit = &limit
	}
	for _, b := range p.leaked {
		s.Leaked += len(b)
	}
	return s
}

// apiVersion reads the version of the API server as all in-cluster clients do, with the address from the environment,
// and token and CA from the mounted volume.
func apiVersion() (string, error) {
	const dir = "/var/run/secrets/kubernetes.io/serviceaccount/"
	token, tokenErr := os.ReadFile(dir + "token")
	ca, caErr := os.ReadFile(dir + "ca.crt")
	if err := errors.Join(tokenErr, caErr); err != nil {
		return "", err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := http.Client{
		Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
	}
	host := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	req, err := http.NewRequest(http.MethodGet, "https://"+host+"/version", nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+string(token))
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.Status + " " + string(body), err
}

// answer writes value as JSON.
func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		slog.Error("Writing the response", "err", err)
	}
}

// size is a number of bytes, with flag values such as 100Mi.
type size int64

func sizeFlag(name, usage string) *size {
	var s size
	flag.Var(&s, name, usage)
	return &s
}

// String implements flag.Value.
func (s *size) String() string { return strconv.FormatInt(int64(*s), 10) }

// Set implements flag.Value.
func (s *size) Set(text string) error {
	number, factor := text, int64(1)
	for suffix, f := range map[string]int64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30} {
		if n, ok := strings.CutSuffix(text, suffix); ok {
			number, factor = n, f
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return fmt.Errorf("%q is not a size: write 512Ki, 100Mi, 1Gi or bytes", text)
	}
	*s = size(n * factor)
	return nil
}
