// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress prints one line per step, in a form that reads well on a terminal and in a log: a step reports what
// it does when it starts, repeats itself every half minute while it runs, and reports how long it took when it is
// done.
package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
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
	parts   []Part // of all steps together
}

// Part is a kind of work, and the time that went into it.
type Part struct {
	Name string
	Took time.Duration
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

// Done ends the step. Parts say what its time went into.
func (s *Step) Done(what string, parts ...Part) {
	close(s.stop)
	text := fmt.Sprintf("%s in %s", what, Round(time.Since(s.begin)))
	if len(parts) > 1 {
		text += " (" + join(parts) + ")"
	}
	s.r.spent(parts)
	s.line(text)
}

// Part is the whole step as one kind of work.
func (s *Step) Part(name string) Part { return Part{Name: name, Took: time.Since(s.begin)} }

func (r *Reporter) spent(parts []Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range parts {
		i := slices.IndexFunc(r.parts, func(known Part) bool { return known.Name == p.Name })
		if i < 0 {
			r.parts, i = append(r.parts, Part{Name: p.Name}), len(r.parts)
		}
		r.parts[i].Took += p.Took
	}
}

// Parts prints what the time of all steps went into, in the order in which each kind of work was first done, unless
// there was none.
func (r *Reporter) Parts() {
	r.mu.Lock()
	parts := slices.Clone(r.parts)
	r.mu.Unlock()
	if len(parts) > 0 {
		r.Note("Steps added up, some of which ran at the same time: %s", join(parts))
	}
}

func join(parts []Part) string {
	words := make([]string, len(parts))
	for i, p := range parts {
		words[i] = p.Name + " " + Round(p.Took).String()
	}
	return strings.Join(words, ", ")
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
