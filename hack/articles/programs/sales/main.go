// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command sales is the program of the story "Go and GOMEMLIMIT": a small HTTP service with a live set (its users) whose
// requests make garbage. It runs with a memory limit, with and without GOMEMLIMIT.
//
//	GET /load?cpu=18s&at=10   answers its own requests, ten at a time, until they took 18 s of processor time
//	GET /stats                memory and processor time that the runtime and the kernel report
package main

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// user is a row of the service: pointers, which the collector follows, and bytes in which it finds none.
type user struct {
	ID, Name, Email string
	Roles           []string
	Settings        []byte
	Next            *user
}

var users []*user

func main() {
	mib := flag("LIVE_MIB", 46)
	var last *user
	for i := range mib * 2150 { // about 2150 rows are a MiB
		last = &user{
			ID: fmt.Sprintf("45b5fbd3-755f-4379-%012d", i), Name: "User Gopher " + strconv.Itoa(i),
			Email: strconv.Itoa(i) + "@example.com", Roles: []string{"USER", "R" + strconv.Itoa(i%7)},
			Settings: make([]byte, 240), Next: last,
		}
		users = append(users, last)
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	go func() { <-end; os.Exit(0) }() // a pod's first process ignores SIGTERM unless it handles it

	http.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) { answer(w, read()) })
	http.HandleFunc("GET /load", func(w http.ResponseWriter, r *http.Request) {
		budget, _ := time.ParseDuration(r.FormValue("cpu"))
		at, _ := strconv.Atoi(r.FormValue("at"))
		answer(w, load(budget, max(at, 1)))
	})
	fmt.Fprintln(os.Stderr, http.ListenAndServe(":"+strconv.Itoa(flag("PORT", 8080)), nil))
	os.Exit(1)
}

func flag(name string, fallback int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return fallback
}

func answer(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

// request does one request: it reads rows as a database driver does, each with strings of its own, encodes a page of
// them, validates it, and returns its hash.
func request(n int) (tag [sha512.Size]byte) {
	page := make([]map[string]any, 0, 400)
	for i := range 400 {
		u := users[(n*131+i*977)%len(users)]
		row := map[string]any{"id": strings.Clone(u.ID), "name": strings.Clone(u.Name), "email": strings.ToUpper(u.Email)}
		page = append(page, row)
	}
	text := bytes.NewBuffer(make([]byte, 0, 448<<10)) // a response buffer, larger than needed
	if json.NewEncoder(text).Encode(page) != nil || !json.Valid(text.Bytes()) {
		return tag
	}
	return sha512.Sum512(text.Bytes())
}

// load answers requests, at of them at a time, until the process has used budget processor time: the same cost on every
// machine, whatever share of it the collector takes.
func load(budget time.Duration, at int) map[string]float64 {
	before := read()
	until := before["cpuSeconds"] + budget.Seconds()
	var answered atomic.Int64
	var group sync.WaitGroup
	for range at {
		group.Go(func() {
			for processor() < until {
				request(int(answered.Add(1)))
			}
		})
	}
	group.Wait()
	after := read()
	for _, counter := range []string{"cpuSeconds", "gcCPUSeconds", "busySeconds", "gcCycles"} {
		after[counter] -= before[counter]
	}
	after["requests"] = float64(answered.Load())
	return after
}

// processor returns the processor time of the process in seconds.
func processor() float64 {
	var use syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use)
	return time.Duration(use.Utime.Nano() + use.Stime.Nano()).Seconds()
}

// read returns what the runtime and the kernel report.
func read() map[string]float64 {
	samples := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"},
	}
	metrics.Read(samples)
	return map[string]float64{
		"gcCycles": float64(samples[0].Value.Uint64()), "gcCPUSeconds": samples[1].Value.Float64(),
		"busySeconds": samples[2].Value.Float64() - samples[3].Value.Float64(), // by the runtime, as gcCPUSeconds is
		"cpuSeconds":  processor(), "rss": resident(),
	}
}

// resident returns the RSS in bytes.
func resident() float64 {
	text, _ := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize())
}
