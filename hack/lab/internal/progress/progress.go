// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress prints the steps of a command, one per line, for a terminal or a log. A step prints a line when it
// starts, every 30 s while it runs, and when it ends, with its duration.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// heartbeat is the time between two lines of a step. CI systems cancel a job without output for minutes.
const heartbeat = 30 * time.Second

// Reporter numbers the steps of one command and prints their lines. Steps may run in parallel.
type Reporter struct {
	mu      sync.Mutex
	out     io.Writer
	total   int
	started int
	begin   time.Time
}

// New returns a reporter for the given number of steps that writes to out.
func New(out io.Writer, total int) *Reporter {
	return &Reporter{out: out, total: total, begin: time.Now()}
}

// Step is one numbered step.
type Step struct {
	r      *Reporter
	number int
	name   string
	begin  time.Time
	stop   chan struct{}
}

// Start starts a step and its heartbeat.
func (r *Reporter) Start(name, doing string) *Step {
	s := r.step(name)
	s.line(doing + " ...")
	go s.beat(doing)
	return s
}

// Skip prints a step that needs no work, with the reason.
func (r *Reporter) Skip(name, why string) {
	s := r.step(name)
	s.line(why)
	close(s.stop)
}

// Note prints a line that is not a step.
func (r *Reporter) Note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format+"\n", args...)
}

// Total prints the result of the command and the time since New.
func (r *Reporter) Total(what string) {
	r.Note("%s (%s)", what, Round(time.Since(r.begin)))
}

func (r *Reporter) step(name string) *Step {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started++
	return &Step{r: r, number: r.started, name: name, begin: time.Now(), stop: make(chan struct{})}
}

// Done ends the step and prints its duration.
func (s *Step) Done(what string) {
	close(s.stop)
	s.line(fmt.Sprintf("%s in %s", what, Round(time.Since(s.begin))))
}

// Fail ends the step as failed. The caller reports the error.
func (s *Step) Fail() {
	close(s.stop)
	s.line(fmt.Sprintf("failed after %s", Round(time.Since(s.begin))))
}

func (s *Step) beat(doing string) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.line(fmt.Sprintf("%s ... %s", doing, Round(time.Since(s.begin))))
		}
	}
}

func (s *Step) line(text string) {
	width := len(fmt.Sprint(s.r.total))
	s.r.Note("[%*d/%d] %-24s %s", width, s.number, s.r.total, s.name, text)
}

// Round rounds a duration to tenths of a second below 10 s, otherwise to seconds.
func Round(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}
