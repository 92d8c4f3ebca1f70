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
	"strconv"
	"strings"
	"syscall"
	"time"

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
func (w *world) launch(ctx context.Context, dir, path string, args ...string) (*program, error) {
	p := &program{name: filepath.Base(path), ended: make(chan struct{})}
	p.log = within(dir, p.name+".log")
	var err error
	if p.api, err = w.front(ctx, kubeconfig(dir, path)); err != nil {
		return nil, err
	}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own
	p.command = exec.CommandContext(ctx, path, args...)
	p.command.Stdout, p.command.Stderr, p.command.Dir = out, out, dir
	p.command.Env = append(
		os.Environ(), "ENABLE_WEBHOOKS=false", "POD_NAMESPACE=memfit-system", "HOME="+dir,
		"KUBECONFIG="+kubeconfig(dir, path),
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
func kubeconfig(dir, path string) string { return within(dir, filepath.Base(path)+".kubeconfig") }

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
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return t, err
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseInt(fields[1], 10, 64) // other lines are no numbers
		switch fields[0] {
		case "VmRSS:":
			t.rss = memory.Bytes(kib) * memory.KiB
		case "VmHWM:":
			t.most = memory.Bytes(kib) * memory.KiB
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.command.Process.Pid))
	if err != nil {
		return t, err
	}
	_, after, _ := strings.Cut(string(stat), ") ") // the program's name may hold spaces
	fields := strings.Fields(after)
	if len(fields) < 13 || t.rss == 0 {
		return t, errors.New("/proc is not as expected")
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux architecture Go runs on
	user, err := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	t.cpu = time.Duration(user+system) * tick
	return t, errors.Join(err, err2)
}
