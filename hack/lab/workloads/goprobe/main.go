// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command goprobe is a Go workload for tests and demonstrations of memory limits. It says what the Go runtime believes
// (GOMEMLIMIT, GOGC, heap) and can be told to hold, leak or churn memory.
//
//	goprobe -hold 100Mi                  keep 100 MiB and serve
//	goprobe -hold 90Mi -hold-over 1m     the same, in a minute
//	goprobe -leak 10Mi                   keep 10 MiB more every second, until it is killed
//	goprobe -churn 200Mi                 make 200 MiB of garbage every second
//	goprobe -burst 30Mi -burst-every 2m  take 30 MiB for 3 s every two minutes, and give them back
//	goprobe -hold 230Mi -map-file 51Mi   walk through a mapped file besides: under a limit of 256Mi this stalls
//	goprobe -read-file 600Mi             read a file again and again: page cache fills the limit, and nothing stalls
//
// GET /stats answers JSON; POST /hold?size=100Mi replaces what is held; GET /api asks the Kubernetes API server for its
// version by the pod's own token, as an operator in this pod would.
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
	hold := sizeFlag("hold", "memory to keep, for example 100Mi")
	holdOver := flag.Duration("hold-over", 0, "how long it takes to get there, evenly; 0: at once")
	leak := sizeFlag("leak", "memory to keep in addition every second")
	churn := sizeFlag("churn", "garbage to make every second")
	burst := sizeFlag("burst", "memory to take now and then, and to give back")
	burstEvery := flag.Duration("burst-every", time.Minute, "time between two bursts")
	burstFor := flag.Duration("burst-for", 3*time.Second, "how long a burst lasts")
	mapFile := sizeFlag(
		"map-file", "a file of this size is written, mapped into memory, and walked through again and again",
	)
	readFile := sizeFlag("read-file", "a file of this size is written, and read again and again")
	walkRandom := flag.Bool("walk-random", false, "pages of the mapped file are touched in no order")
	fileDir := flag.String("file-dir", os.TempDir(), "directory for those files; it must not be in memory")
	pause := flag.Duration("pause", 10*time.Millisecond, "time between two rounds through a file")
	flag.Parse()

	// A pod's first process ignores SIGTERM unless it asks for it, and would be waited for until the grace period is over.
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

// probe holds memory.
type probe struct {
	mu     sync.Mutex
	kept   []byte
	leaked [][]byte
	// rounds through files, how long the last one took, and the time between two of them.
	rounds    int
	roundTook time.Duration
	pause     time.Duration
}

// files starts what is to be done with files.
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

// holdSlowly keeps memory that it takes in steps. It is allocated at once, so that none is copied, and touched slowly.
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

// burstOf takes memory now and then. It is mapped, not allocated, so that it is gone when it is given back.
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
			slog.Error("Giving memory back", "err", err)
		}
	}
}

// touched returns memory that is resident: pages that nobody wrote to cost nothing.
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

// stats is what GET /stats answers. Sizes are bytes.
type stats struct {
	GoVersion  string `json:"goVersion"`
	GoMemLimit *int64 `json:"goMemLimit"` // null: no limit
	GoGC       uint64 `json:"gogc"`       // 0: off
	GoMaxProcs int    `json:"goMaxProcs"`
	HeapLive   uint64 `json:"heapLive"`
	Total      uint64 `json:"total"` // what the runtime has of the system
	GCCycles   uint64 `json:"gcCycles"`
	Held       int    `json:"held"`
	Leaked     int    `json:"leaked"`
	Rounds     int    `json:"rounds"`    // through files
	RoundTook  string `json:"roundTook"` // the last of them
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

// apiVersion asks the API server as every in-cluster client does: address from the environment, token and CA from the
// mounted volume.
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

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		slog.Error("Answering", "err", err)
	}
}

// size is a number of bytes that reads like a Kubernetes quantity.
type size int64

func sizeFlag(name, usage string) *size {
	var s size
	flag.Var(&s, name, usage)
	return &s
}

// String makes size a flag.Value.
func (s *size) String() string { return strconv.FormatInt(int64(*s), 10) }

// Set makes size a flag.Value.
func (s *size) Set(text string) error {
	number, factor := text, int64(1)
	for suffix, f := range map[string]int64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30} {
		if n, ok := strings.CutSuffix(text, suffix); ok {
			number, factor = n, f
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return fmt.Errorf("%q is no size: write 512Ki, 100Mi, 1Gi or bytes", text)
	}
	*s = size(n * factor)
	return nil
}
