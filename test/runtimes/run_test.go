//go:build runtimes

// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
)

// edition is one version of one runtime.
type edition struct {
	// name is "node-20.20.2"; SKIP names it, or all that begin with "node".
	name string
	// runtime and version are declared in the profile, unless a trial overrides them.
	runtime v1alpha1.RuntimeType
	version string
	// fetch returns the path of the program, and fails when it is unavailable.
	fetch func(t *testing.T) string
	// probe are the arguments with which the program prints facts about itself; facts parses its output.
	probe []string
	facts func(output string) map[string]string
	// trials may run the program without settings to get its own values.
	trials func(t *testing.T, p *program) []trial
	// controls are environments with which this version fails: they prove that the test detects failures.
	controls []control
}

// control is a setting that memfit must never write, and the exit code that it causes.
type control struct {
	name, env string
	exit      int
}

// program is an edition on this machine.
type program struct {
	edition
	path string
}

// result is a process's exit code and output.
type result struct {
	exit   int
	facts  map[string]string
	output string
}

// slots limits the parallel processes to two: small machines and CI have two cores.
var slots = make(chan struct{}, 2)

// processLimit is far longer than any probe takes (a JVM: half a second), also on a busy machine.
const processLimit = 2 * time.Minute

func (p *program) run(t *testing.T, env, args []string) result {
	t.Helper()
	slots <- struct{}{}
	defer func() { <-slots }()
	ctx, cancel := context.WithTimeout(t.Context(), processLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, append(append([]string{}, args...), p.probe...)...)
	cmd.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "NO_COLOR=1"}, env...)
	cmd.Dir = "testdata"
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		t.Fatalf("%s did not run: %v (%v)\n%s", p.path, err, ctx.Err(), out.String())
	}
	r := result{exit: cmd.ProcessState.ExitCode(), output: out.String()}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		r.exit = 128 + int(status.Signal()) // as the kubelet reports it
	}
	if r.exit == 0 {
		r.facts = p.facts(r.output)
	}
	return r
}

// tally has the counts of the last line of output.
var tally struct {
	sync.Mutex
	runtimes                            map[v1alpha1.RuntimeType]bool
	skipped                             []string
	versions, cases, controls, failures atomic.Int32
}

func TestMain(m *testing.M) {
	// Other programs on this machine have priority. Children inherit it.
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10); err != nil {
		fmt.Fprintln(os.Stderr, "cannot lower the priority:", err)
	}
	tally.runtimes = map[v1alpha1.RuntimeType]bool{}
	code := m.Run()
	if len(tally.skipped) > 0 {
		fmt.Printf("skipped=%s (named in SKIP)\n", strings.Join(tally.skipped, ","))
	}
	fmt.Printf("runtimes=%d versions=%d cases=%d controls=%d failures=%d\n", len(tally.runtimes), tally.versions.Load(),
		tally.cases.Load(), tally.controls.Load(), tally.failures.Load())
	os.Exit(code)
}

// TestFetch only fetches or installs the programs of all editions. `make eval-attribution` runs it with -run for the
// programs that it needs.
func TestFetch(t *testing.T) {
	for _, e := range editions(t) {
		t.Run(e.name, func(t *testing.T) {
			if isSkipped(e.name) {
				t.Skip("SKIP names it")
			}
			if _, err := os.Stat(e.fetch(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRuntimes(t *testing.T) {
	for _, e := range editions(t) {
		t.Run(e.name, func(t *testing.T) {
			if isSkipped(e.name) {
				tally.Lock()
				tally.skipped = append(tally.skipped, e.name)
				tally.Unlock()
				t.Skip("SKIP names it")
			}
			started := false
			defer func() {
				if !started { // unavailable, or does not start without settings
					tally.failures.Add(1)
				}
			}()
			p := &program{edition: e, path: e.fetch(t)}
			tally.Lock()
			tally.runtimes[e.runtime] = true
			tally.Unlock()
			tally.versions.Add(1)
			for _, c := range e.controls {
				t.Run("control: "+c.name, func(t *testing.T) {
					t.Parallel()
					tally.controls.Add(1)
					if got := p.run(t, []string{c.env}, nil); got.exit != c.exit {
						tally.failures.Add(1)
						t.Errorf(
							"%s: exit code %d, want %d: this test does not detect failures\n%s", c.env, got.exit, c.exit, tail(got.output),
						)
					}
				})
			}
			trials := e.trials(t, p)
			started = true
			for _, tr := range trials {
				t.Run(tr.name, func(t *testing.T) {
					t.Parallel()
					tally.cases.Add(1)
					p.try(t, tr)
					if t.Failed() {
						tally.failures.Add(1)
					}
				})
			}
		})
	}
}

// isSkipped reports whether SKIP names an edition: SKIP="php bun node-12" skips editions that are unavailable here.
func isSkipped(name string) bool {
	for skip := range strings.FieldsSeq(os.Getenv("SKIP")) {
		if name == skip || strings.HasPrefix(name, skip+"-") || strings.HasPrefix(name, skip+".") {
			return true
		}
	}
	return false
}

// tail returns the end of an output.
func tail(output string) string {
	const most = 2000
	if len(output) > most {
		return "..." + output[len(output)-most:]
	}
	return output
}
