// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/memfit/memfit/internal/memory"
)

// program is one process of this run.
type program struct {
	name, log string
	command   *exec.Cmd
	ended     chan struct{}
	api       *countingProxy
}

// launch starts a program with its own proxy of the API server; both end with the test.
func (w *world) launch(t *testing.T, dir, name string, command ...string) *program {
	t.Helper()
	p := &program{name: name, log: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	var err error
	if p.api, err = w.proxyFor(t.Context(), kubeconfig(dir, name)); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() // the child has its own
	command = slices.Concat(w.before, command)
	p.command = exec.Command(command[0], command[1:]...)
	p.command.Stdout, p.command.Stderr, p.command.Dir = out, out, dir
	p.command.Env = slices.Concat(os.Environ(), []string{
		"ENABLE_WEBHOOKS=false", "POD_NAMESPACE=" + system, "HOME=" + dir, "KUBECONFIG=" + kubeconfig(dir, name),
	}, w.environment)
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.command.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		<-p.ended
		_ = p.api.server.Close()
	})
	return p
}

// kubeconfig returns the path of a program's kubeconfig.
func kubeconfig(dir, name string) string { return filepath.Join(dir, name+".kubeconfig") }

// logTail returns the end of the program's log, as an error.
func (p *program) logTail() error {
	text, err := os.ReadFile(p.log)
	return errors.Join(fmt.Errorf("end of the log of %s:\n%s", p.name, text[max(0, len(text)-2000):]), err)
}

func (p *program) alive() error {
	select {
	case <-p.ended:
		return errors.Join(fmt.Errorf("%s has ended", p.name), p.logTail())
	default:
		return nil
	}
}

// usage is what a process has used so far.
type usage struct {
	rss, peak     memory.Bytes
	cpu           time.Duration
	reads, writes int64
}

func (p *program) usage() (usage, error) {
	t := usage{reads: p.api.reads.Load(), writes: p.api.writes.Load()}
	proc, err := procfs.NewProc(p.command.Process.Pid)
	if err != nil {
		return t, err
	}
	status, err := proc.NewStatus()
	stat, err2 := proc.Stat()
	t.rss, t.peak = memory.Bytes(status.VmRSS), memory.Bytes(status.VmHWM)
	t.cpu = time.Duration(stat.CPUTime() * float64(time.Second))
	return t, errors.Join(err, err2)
}
