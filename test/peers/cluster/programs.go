// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/memfit/memfit/internal/memory"
)

// program is one process of this run.
type program struct {
	name, log string
	command   *exec.Cmd
	ended     chan struct{}
	api       *counted
}

// launch starts a program with an API server of its own; it dies with this one.
func (w *world) launch(ctx context.Context, dir, name string, command ...string) (*program, error) {
	p := &program{name: name, ended: make(chan struct{})}
	p.log = filepath.Join(dir, p.name+".log")
	var err error
	if p.api, err = w.front(ctx, kubeconfig(dir, name)); err != nil {
		return nil, err
	}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own
	command = slices.Concat(w.before, command)
	p.command = exec.CommandContext(ctx, command[0], command[1:]...)
	p.command.Stdout, p.command.Stderr, p.command.Dir = out, out, dir
	p.command.Env = append(
		os.Environ(), "ENABLE_WEBHOOKS=false", "POD_NAMESPACE=memfit-system", "HOME="+dir,
		"KUBECONFIG="+kubeconfig(dir, name),
	)
	p.command.Env = append(p.command.Env, w.environment...)
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.command.Cancel = func() error { return p.command.Process.Signal(syscall.SIGTERM) }
	p.command.WaitDelay = 10 * time.Second
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// kubeconfig is the file with the address of a program's API server.
func kubeconfig(dir, name string) string { return filepath.Join(dir, name+".kubeconfig") }

func (p *program) stop() {
	_ = p.command.Process.Kill()
	<-p.ended
	_ = p.api.server.Close()
}

// said is the end of what it said, as an error.
func (p *program) said() error {
	text, err := os.ReadFile(p.log)
	return errors.Join(fmt.Errorf("%s said last:\n%s", p.name, text[max(0, len(text)-2000):]), err)
}

func (p *program) alive() error {
	select {
	case <-p.ended:
		return errors.Join(fmt.Errorf("%s has ended", p.name), p.said())
	default:
		return nil
	}
}

// taken is what a process has taken so far.
type taken struct {
	rss, most     memory.Bytes
	cpu           time.Duration
	reads, writes int64
}

func (p *program) taken() (taken, error) {
	t := taken{reads: p.api.reads.Load(), writes: p.api.writes.Load()}
	proc, err := procfs.NewProc(p.command.Process.Pid)
	if err != nil {
		return t, err
	}
	status, err := proc.NewStatus()
	stat, err2 := proc.Stat()
	t.rss, t.most = memory.Bytes(status.VmRSS), memory.Bytes(status.VmHWM)
	t.cpu = time.Duration(stat.CPUTime() * float64(time.Second))
	return t, errors.Join(err, err2)
}
