// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress prints one line per step, in a form that reads well on a terminal and in a log: a step reports what
// it does when it starts, repeats itself every half minute while it runs, and reports how long it took when it is
// done.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// heartbeat keeps CI systems, which end a job that is silent for minutes, and people from giving up on a long step.
const heartbeat = 30 * time.Second

// Reporter numbers the steps of one run. Steps may run at the same time: lines never mix.
type Reporter struct {
	mu      sync.Mutex
	out     io.Writer
	total   int
	started int
	begin   time.Time
}

// New returns a reporter of total steps that writes to out.
func New(out io.Writer, total int) *Reporter {
	return &Reporter{out: out, total: total, begin: time.Now()}
}

// Step is one numbered line of work.
type Step struct {
	r      *Reporter
	number int
	name   string
	begin  time.Time
	stop   chan struct{}
}

// Start announces a step that takes a while.
func (r *Reporter) Start(name, doing string) *Step {
	s := r.step(name)
	s.line(doing + " ...")
	go s.beat(doing)
	return s
}

// Skip announces a step that needs no work, and why.
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

// Total prints what was achieved and the time since the reporter was made.
func (r *Reporter) Total(what string) {
	r.Note("%s (%s)", what, Round(time.Since(r.begin)))
}

func (r *Reporter) step(name string) *Step {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started++
	return &Step{r: r, number: r.started, name: name, begin: time.Now(), stop: make(chan struct{})}
}

// Done ends the step.
func (s *Step) Done(what string) {
	close(s.stop)
	s.line(fmt.Sprintf("%s in %s", what, Round(time.Since(s.begin))))
}

// Fail ends the step; the error itself is reported by whoever gets it.
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

// Round shortens a duration for people: tenths below ten seconds, whole seconds above.
func Round(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}
