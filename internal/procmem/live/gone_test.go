// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package live

import (
	"bufio"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/procmem"
)

// child starts a shell that prints "ready" and continues with a script when its input ends.
func child(t *testing.T, script string) (*Target, *exec.Cmd, io.Closer) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh", "-c", "echo ready; read line; "+script)
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Skip(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, error %v", line, err)
	}
	target, err := open("/proc", command.Process.Pid)
	if err != nil {
		t.Skipf("children cannot be read here: %v", err)
	}
	t.Cleanup(target.Close)
	return target, command, in
}

func writable(t *testing.T, target *Target) procmem.Mapping {
	t.Helper()
	mappings, err := target.Mappings()
	if err != nil {
		t.Skipf("children cannot be read here: %v", err)
	}
	for _, m := range mappings {
		if m.Has(procmem.Writable) && m.RSS > 0 {
			return m
		}
	}
	t.Fatal("nothing is writable")
	return procmem.Mapping{}
}

// TestExit: of a process that has ended nothing is read, and it is reported as such.
func TestExit(t *testing.T) {
	target, command, in := child(t, "exit")
	m := writable(t, target)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	nothing(t, target, m)
	if err := target.Same(); err == nil {
		t.Error("it is said to be there")
	}
}

// TestExec: the pages of the program before are gone, and those of the next one are not taken for them.
func TestExec(t *testing.T) {
	target, command, in := child(t, "exec sleep 60")
	m := writable(t, target)
	was := target.Process().Exe
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	for is := was; is == was; time.Sleep(time.Millisecond) {
		p, err := procmem.Read(target.dir, command.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		is = p.Exe
	}
	runs, err := target.Resident(m.Start, m.End)
	if len(runs) > 0 {
		t.Errorf("%d ranges of the program before are resident, error %v", len(runs), err)
	}
}

func nothing(t *testing.T, target *Target, m procmem.Mapping) {
	t.Helper()
	if runs, err := target.Resident(m.Start, m.End); len(runs) > 0 {
		t.Errorf("%d ranges are resident, error %v", len(runs), err)
	}
	if n, err := target.ReadAt(make([]byte, 8), m.Start); err == nil || n > 0 {
		t.Errorf("%d bytes were read, error %v", n, err)
	}
	if mappings, err := target.Mappings(); err == nil {
		t.Errorf("%d mappings", len(mappings))
	}
}
