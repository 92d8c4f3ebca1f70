// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package process starts the lab's daemons, records them and kills them.
//
// A daemon outlives the command that started it. Its record has pid, start time and boot ID. A later process with the
// same pid does not match the record and is never signalled.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/memfit/memfit/hack/lab/internal/netns"
)

// Spec specifies how to run a daemon.
type Spec struct {
	Name  string   `json:"name"`
	Path  string   `json:"path"`
	Args  []string `json:"args"`
	Env   []string `json:"env,omitempty"`   // in addition to PATH and HOME
	NetNS string   `json:"netns,omitempty"` // the network namespace to run in; empty: the machine's
	Log   string   `json:"log"`
}

// Record identifies a started daemon.
type Record struct {
	Spec
	PID     int       `json:"pid"`
	Start   uint64    `json:"startTicks"` // clock ticks since boot, from /proc/PID/stat
	Boot    string    `json:"boot"`
	Started time.Time `json:"started"`
}

// Start starts the daemon in its own session and appends its output to its log.
func Start(spec Spec) (Record, error) {
	if err := os.MkdirAll(filepath.Dir(spec.Log), 0o755); err != nil {
		return Record{}, err
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return Record{}, fmt.Errorf("opening the log of %s: %w", spec.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Dir = "/"
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/root"}, spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	start := cmd.Start
	if spec.NetNS != "" {
		// A child inherits the namespaces of the thread that forks it. `ip netns exec` would also remount /sys, and the
		// kubelet would no longer see the cgroups.
		start = func() error { return netns.Do(spec.NetNS, cmd.Start) }
	}
	if err := start(); err != nil {
		return Record{}, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	go cmd.Wait() //nolint:errcheck // only reaps a daemon that dies while this program runs
	ticks, _, err := stat(cmd.Process.Pid)
	if err != nil {
		return Record{}, fmt.Errorf("%s ended immediately, see %s: %w", spec.Name, spec.Log, err)
	}
	boot, err := bootID()
	if err != nil {
		return Record{}, err
	}
	return Record{Spec: spec, PID: cmd.Process.Pid, Start: ticks, Boot: boot, Started: time.Now().UTC()}, nil
}

// Alive reports whether the daemon is running. Zombies and other processes with its pid do not count.
func (r Record) Alive() bool {
	boot, err := bootID()
	if err != nil || boot != r.Boot {
		return false
	}
	ticks, state, err := stat(r.PID)
	return err == nil && ticks == r.Start && state != 'Z' && state != 'X'
}

// killTimeout limits the wait for a killed process. One that takes longer hangs in an uninterruptible system call.
const killTimeout = 20 * time.Second

// Stop kills the daemon and waits until it has ended.
func (r Record) Stop() error { return End([]Record{r}) }

// End kills the processes first and then waits for all of them. To wait for each of hundreds in turn would give new
// ones time to start.
func End(records []Record) error {
	var failed error
	for _, r := range records {
		if err := r.signal(syscall.SIGKILL); err != nil {
			failed = errors.Join(failed, fmt.Errorf("ending %s (pid %d): %w", r.Name, r.PID, err))
		}
	}
	deadline := time.Now().Add(killTimeout)
	for _, r := range records {
		if !r.gone(time.Until(deadline)) {
			failed = errors.Join(failed, fmt.Errorf("%s (pid %d) is still running after SIGKILL", r.Name, r.PID))
		}
	}
	return failed
}

// signal sends a signal to the recorded process. If it has ended, signal does nothing.
func (r Record) signal(s syscall.Signal) error {
	p, err := os.FindProcess(r.PID) // holds a pidfd: a signal cannot reach a later process with this pid
	if err != nil {
		return err
	}
	defer p.Release() //nolint:errcheck // an error has no consequence
	if !r.Alive() {
		return nil
	}
	if err := p.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// gone reports whether the process ends within the duration.
func (r Record) gone(within time.Duration) bool {
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if !r.Alive() {
			return true
		}
	}
	return !r.Alive()
}

// stat reads the start time of a process, in clock ticks since boot, and its state.
func stat(pid int) (startTicks uint64, state byte, err error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, 0, err
	}
	return parseStat(data)
}

// parseStat reads fields 3 and 22 of /proc/PID/stat. Field 2, the program's name in parentheses, may contain spaces and
// parentheses, so it counts the fields after the last parenthesis.
func parseStat(data []byte) (startTicks uint64, state byte, err error) {
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return 0, 0, fmt.Errorf("no program name in %q", data)
	}
	fields := strings.Fields(string(data[end+1:]))
	if len(fields) < 20 {
		return 0, 0, fmt.Errorf("too few fields in %q", data)
	}
	startTicks, err = strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the start time: %w", err)
	}
	return startTicks, fields[0][0], nil
}

// bootID returns an ID of the machine's current boot: pids and start times are unique only within one boot.
func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("reading the boot ID: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
