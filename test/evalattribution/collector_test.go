// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && runtimes

package evalattribution

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/levers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

// collectorBound is the largest relative error of the collector's cost and of the saving by a higher limit; pointBound
// the largest absolute error of small values, because whole percents are reported.
const (
	collectorBound = 0.2
	pointBound     = 0.01
)

// TestCollectorCost runs the program of the article on Go with the article's limits, each next to one with 64Mi more.
// It compares the predicted processor time with the Go runtime's while they answer requests in turn, so that other load
// on the machine affects both.
func TestCollectorCost(t *testing.T) {
	program := filepath.Join(t.TempDir(), "sales")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../hack/articles/programs/sales")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, tc := range []struct {
		limit   memory.Bytes
		percent int32 // of it is GOMEMLIMIT
		gogc    string
	}{
		{88 * memory.MiB, 90, ""}, // memfit-tight
		{107 * memory.MiB, 90, ""},
		{100 * memory.MiB, 90, "off"},
		{127 * memory.MiB, 100, "off"}, // limit-127-gomemlimit
		{176 * memory.MiB, 100, "off"}, // limit-176-gomemlimit
	} {
		t.Run(fmt.Sprintf("%s, GOMEMLIMIT %d %%, GOGC=%s", tc.limit, tc.percent, tc.gogc), func(t *testing.T) {
			now := serve(t, program, tc.limit, tc.percent, tc.gogc)
			then := serve(t, program, tc.limit+runtimes.MoreLimit, tc.percent, tc.gogc)
			for range 8 {
				now.answer(t)
				then.answer(t)
			}
			p := now.predict(t, tc.limit)
			all := 1 - then.request()/now.request()
			saved := (now.share()*now.request() - then.share()*then.request()) / now.request()
			t.Logf("a request: %.2f ms, then %.2f ms, %.0f %% less; the collector's share: %.1f %%, then %.1f %%",
				1000*now.request(), 1000*then.request(), 100*all, 100*now.share(), 100*then.share())
			t.Log(p.Why)
			if all < p.Cost.Saved-5*pointBound {
				t.Errorf("a request takes %.0f %% less, want %.0f %% or more", 100*all, 100*p.Cost.Saved)
			}
			within(t, "the collector's share", p.Cost.Collector, now.share())
			within(t, "what 64Mi more save", p.Cost.Saved, saved)
		})
	}
}

func within(t *testing.T, what string, predicted, measured float64) {
	t.Helper()
	off := math.Abs(predicted - measured)
	t.Logf("%s: predicted %.2f %%, measured %.2f %%, error %.1f %%", what, 100*predicted, 100*measured, 100*off/measured)
	if off > max(collectorBound*measured, pointBound) {
		t.Errorf("%s: the error exceeds %.0f %%", what, 100*collectorBound)
	}
}

// server is the program with a limit, and its reported sums over the answered requests.
type server struct {
	process *Process
	url     string

	CPU       float64 `json:"cpuSeconds"`
	Busy      float64 `json:"busySeconds"`
	Collector float64 `json:"gcCPUSeconds"`
	Requests  float64 `json:"requests"`
}

// request returns the processor time of a request in seconds, by the kernel.
func (s *server) request() float64 { return s.CPU / s.Requests }

// share returns the collector's share of it. The runtime measures both in wall time, which includes waiting for a
// processor.
func (s *server) share() float64 { return s.Collector / s.Busy }

// serve starts the program.
func serve(t *testing.T, program string, limit memory.Bytes, percent int32, gogc string) *server {
	t.Helper()
	port := freePort(t)
	command := exec.CommandContext(t.Context(), program)
	command.Env = append(os.Environ(), "PORT="+strconv.Itoa(port),
		"GOMEMLIMIT="+strconv.FormatInt(int64(limit.Percent(percent)), 10))
	if gogc != "" {
		command.Env = append(command.Env, "GOGC="+gogc)
	}
	command.Stderr, command.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{url: "http://127.0.0.1:" + strconv.Itoa(port)}
	s.process = &Process{PID: command.Process.Pid, command: command}
	t.Cleanup(s.process.stop)
	for range 200 {
		if r, err := http.Get(s.url + "/stats"); err == nil { //nolint:noctx // of the test's own program
			_ = r.Body.Close()
			return s
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the program does not answer")
	return nil
}

// answer makes it answer requests for some processor time.
func (s *server) answer(t *testing.T) {
	t.Helper()
	r, err := http.Get(s.url + "/load?cpu=1500ms&at=10") //nolint:noctx // of the test's own program
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	var more server
	if err := json.NewDecoder(r.Body).Decode(&more); err != nil {
		t.Fatal(err)
	}
	s.CPU, s.Busy = s.CPU+more.CPU, s.Busy+more.Busy
	s.Collector, s.Requests = s.Collector+more.Collector, s.Requests+more.Requests
}

// predict returns the agent's prediction for its limit.
func (s *server) predict(t *testing.T, limit memory.Bytes) levers.Prediction {
	t.Helper()
	result, err := s.process.Attribute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return predictionOf(t, result, limit, "GOMEMLIMIT")
}

// predictionOf returns the prediction for a lever.
func predictionOf(t *testing.T, result Attribution, limit memory.Bytes, action string) levers.Prediction {
	t.Helper()
	all := levers.Predict([]levers.Process{{
		RSS: result.RSS, Usages: result.Usages, Env: result.Snapshot.Env,
	}}, limit).Predictions
	i := slices.IndexFunc(all, func(p levers.Prediction) bool { return p.Action == action })
	if i < 0 {
		t.Fatalf("no prediction for %s: %v, %v", action, result.Usages, result.Failed)
	}
	return all[i]
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // of the test's own program
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}
