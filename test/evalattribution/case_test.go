// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && runtimes

package evalattribution

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/attribution/readers"
	"github.com/memfit/memfit/internal/detect"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/internal/procmem/live"
)

// Case is one real process and its checks. The files case_*_test.go append theirs to cases.
type Case struct {
	Name string
	// Command builds the program in a folder and returns the command to start. The process must print a line "ready",
	// and may answer lines on its input. [ErrSkip] skips the case.
	Command func(work string) (*exec.Cmd, error)
	// Check compares with numbers of the process itself. Nil: only the sum of regions is compared with the RSS.
	Check func(ctx context.Context, p *Process) ([]Comparison, error)
}

// ErrSkip reports that a case cannot run here.
var ErrSkip = errors.New("NOT CHECKED")

// Measure is the subject of a comparison; each has its own bound.
type Measure string

// The measures.
const (
	Regions Measure = "regions" // the sum of regions and the RSS
	Trim    Measure = "trim"    // predicted and actual release by a trim
	Map     Measure = "map"     // the size of located free ranges and counted free memory
	Lever   Measure = "lever"   // predicted bounds and actual release by a lever
	Heap    Measure = "heap"    // a heap's memory in use and the runtime's own number
)

// Comparison is one estimate beside the truth. The error is relative to Of, or to the truth where that is 0.
type Comparison struct {
	Measure         Measure
	What            string
	Estimate, Truth memory.Bytes
	Of              memory.Bytes
	// MayDiffer is the allowed error of this comparison, where the case's comment explains one; 0: the measure's bound.
	MayDiffer float64
}

// Error returns the relative error of the estimate.
func (c Comparison) Error() float64 {
	of := c.Of
	if of == 0 {
		of = c.Truth
	}
	diff := c.Estimate.Minus(c.Truth) + c.Truth.Minus(c.Estimate)
	if diff == 0 {
		return 0
	}
	return float64(diff) / float64(max(of, 1))
}

// cases are all cases, in the order of their files' names.
var cases []Case

// allReaders are the readers in the order of docs/design/attribution.md.
var allReaders = readers.All(time.Now)

// Process is a process of a case.
type Process struct {
	PID int

	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// start starts the process of a case and waits until it is ready.
func start(command *exec.Cmd) (*Process, error) {
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &Process{PID: command.Process.Pid, command: command, in: in, out: bufio.NewReader(out)}
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			p.stop()
			return nil, fmt.Errorf("waiting for %s: %w", command.Path, err)
		}
		if strings.TrimSpace(line) == "ready" {
			return p, nil
		}
	}
}

func (p *Process) stop() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// Ask sends a line and returns the line that answers it.
func (p *Process) Ask(line string) (string, error) {
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		return "", err
	}
	answer, err := p.out.ReadString('\n')
	return strings.TrimSpace(answer), err
}

// Numbers sends a line and parses the answer as numbers.
func (p *Process) Numbers(line string) ([]int64, error) {
	answer, err := p.Ask(line)
	if err != nil {
		return nil, err
	}
	var numbers []int64
	for field := range strings.FieldsSeq(answer) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("answer to %s: %w", line, err)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// RSS returns the current RSS, from the kernel.
func (p *Process) RSS() (memory.Bytes, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "smaps_rollup"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), "\nRss:")
	field, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.ParseInt(field, 10, 64)
	return memory.Bytes(n) * memory.KiB, err
}

// Stop stops all threads of the process.
func (p *Process) Stop() error {
	err := p.command.Process.Signal(syscall.SIGSTOP)
	time.Sleep(50 * time.Millisecond) // until every thread has stopped
	return err
}

// Continue resumes all threads.
func (p *Process) Continue() error { return p.command.Process.Signal(syscall.SIGCONT) }

// Attribution is one attribution of the process, and its duration.
type Attribution struct {
	attribution.Result
	Snapshot *attribution.Snapshot
	// Located is the resident size of the ranges that readers report as free.
	Located memory.Bytes
	Took    time.Duration
}

// Attribute attributes the memory of the process as the agent does.
func (p *Process) Attribute(ctx context.Context) (Attribution, error) {
	began := time.Now()
	dir, err := live.Proc("/proc").Process(p.PID)
	if err != nil {
		return Attribution{}, err
	}
	target, err := dir.Target(p.PID)
	if err != nil {
		return Attribution{}, err
	}
	defer target.Close()
	snapshot, err := attribution.Take(target, detect.Variables())
	if err != nil {
		return Attribution{}, err
	}
	defer snapshot.Close()
	snapshot.Locate = true
	result, err := attribution.Attribute(ctx, snapshot, allReaders)
	if err != nil {
		return Attribution{}, err
	}
	a := Attribution{Result: result, Snapshot: snapshot, Took: time.Since(began)}
	a.Located, err = located(snapshot, result.Free)
	return a, err
}

// Usage returns the result of one reader, or nil.
func (a Attribution) Usage(reader string) *amounts.Usage {
	for i := range a.Usages {
		if a.Usages[i].Reader == reader {
			return &a.Usages[i]
		}
	}
	return nil
}

var _ procmem.Memory = (*live.Target)(nil)
