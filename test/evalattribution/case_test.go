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

// Case is one real process and what it is asked about. A case is a file of its own, which appends it to cases.
type Case struct {
	Name string
	// Command builds what is needed below a folder and returns what to start. The process must print a line "ready",
	// and may answer lines on its input. [ErrSkip] leaves the case out and is reported.
	Command func(work string) (*exec.Cmd, error)
	// Check asks the process for the truth and compares. Nil compares only the sum of regions with the RSS.
	Check func(ctx context.Context, p *Process) ([]Comparison, error)
}

// ErrSkip reports that a case cannot run here.
var ErrSkip = errors.New("NOT CHECKED")

// Measure is what a comparison is about; each has a bound of its own.
type Measure string

// What is compared.
const (
	Regions Measure = "regions" // the sum of regions against the RSS
	Trim    Measure = "trim"    // what a lever is said to give back against what it gave back
	Map     Measure = "map"     // where free memory is said to lie, against how much of it there is
	Lever   Measure = "lever"   // what a lever gave back, against the bounds that were predicted
	Heap    Measure = "heap"    // what is in use of a heap against what its runtime says
)

// Comparison is one estimate beside the truth. The error is relative to Of, or to the truth where that is 0.
type Comparison struct {
	Measure         Measure
	What            string
	Estimate, Truth memory.Bytes
	Of              memory.Bytes
	// MayDiffer is how far apart they may be for this comparison, where the bound of the measure does not hold; 0 is that
	// bound. The case's comment explains why.
	MayDiffer float64
}

// Error is how far the estimate is off.
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

// asked are the readers, in the order of docs/design/attribution.md.
var asked = readers.All(time.Now)

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

// Numbers asks and reads the answer as numbers.
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

// RSS is what the kernel counts now.
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
	time.Sleep(50 * time.Millisecond) // every thread has taken it
	return err
}

// Continue lets them run on.
func (p *Process) Continue() error { return p.command.Process.Signal(syscall.SIGCONT) }

// Look is one attribution of the process with what it cost.
type Look struct {
	attribution.Result
	Snapshot *attribution.Snapshot
	// Located is how much of what is resident lies where readers say that it is free.
	Located memory.Bytes
	Took    time.Duration
}

// Look attributes the memory of the process as the agent does.
func (p *Process) Look(ctx context.Context) (Look, error) {
	began := time.Now()
	dir, err := live.Proc("/proc").Process(p.PID)
	if err != nil {
		return Look{}, err
	}
	target, err := dir.Target(p.PID)
	if err != nil {
		return Look{}, err
	}
	defer target.Close()
	snapshot, err := attribution.Take(target, detect.Variables())
	if err != nil {
		return Look{}, err
	}
	defer snapshot.Close()
	snapshot.Locate = true
	result, err := attribution.Attribute(ctx, snapshot, asked)
	if err != nil {
		return Look{}, err
	}
	look := Look{Result: result, Snapshot: snapshot, Took: time.Since(began)}
	look.Located, err = located(snapshot, result.Free)
	return look, err
}

// Usage is what one reader found, or nil.
func (l Look) Usage(reader string) *amounts.Usage {
	for i := range l.Usages {
		if l.Usages[i].Reader == reader {
			return &l.Usages[i]
		}
	}
	return nil
}

var _ procmem.Memory = (*live.Target)(nil)
