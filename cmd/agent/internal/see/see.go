// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package see

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/memfit/memfit/cmd/agent/internal/scan"
	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/liveness"
)

// Worker implements [scan.Inspector]. [Worker.Run] does the work.
type Worker struct {
	newInspector func() *inspector
	watchdog     *liveness.Watchdog
	patience     time.Duration // how long an inspection may take before it is abandoned
	jobs         chan scan.Inspection
	found        chan scan.Finding

	// Only Run uses the fields below.
	inspector *inspector
	abandoned map[string]blocked // by container
}

// blocked is an inspection that did not return in time.
type blocked struct {
	namespace string
	finding   <-chan scan.Finding // has a value once the inspection returned
}

const (
	// maxInspection bounds the inspection of one container. The longest measured one took 0.4 s.
	maxInspection = 5 * time.Second
	// patience is how long the Worker waits for an inspection that does not stop after maxInspection. A system call that
	// reads another process can block forever: its pages or files may be served by the process itself (userfaultfd, FUSE)
	// or by a server that does not answer (NFS).
	patience                 = 30 * time.Second
	maxAbandoned             = 8 // blocked inspections, each with a thread
	maxAbandonedPerNamespace = 2
)

// New returns a Worker for a /proc directory, on a node with cgroup version v. Readers must be stateless, because
// abandoned inspections may still use them.
func New(
	proc string, v cgroup.Version, readers []attribution.Reader, now func() time.Time, w *liveness.Watchdog,
) *Worker {
	e := &Worker{
		newInspector: func() *inspector { return newInspector(proc, v, readers, now) },
		watchdog:     w, patience: patience,
		jobs: make(chan scan.Inspection), found: make(chan scan.Finding, 1), abandoned: map[string]blocked{},
	}
	e.inspector = e.newInspector()
	return e
}

// Start submits a container, and reports whether its inspection starts now.
func (e *Worker) Start(inspection scan.Inspection) bool {
	select {
	case e.jobs <- inspection:
		return true
	default:
		return false
	}
}

// Found returns the channel of results.
func (e *Worker) Found() <-chan scan.Finding { return e.found }

// Run inspects the submitted containers until ctx ends.
func (e *Worker) Run(ctx context.Context) {
	for e.waitForSlot(ctx) {
		var j scan.Inspection
		select {
		case <-ctx.Done():
			return
		case j = <-e.jobs:
		}
		done := e.watchdog.Begin(errand("the inspection of container " + j.Container))
		finding := e.inspect(ctx, j)
		finding.Container, finding.Namespace = j.Container, j.Namespace
		select {
		case e.found <- finding:
		case <-ctx.Done():
		}
		done()
	}
}

// errand names the Worker for the liveness check.
type errand string

func (e errand) String() string { return string(e) }

var errBlocked = errors.New("reading its processes blocks")

// inspect inspects a container on a thread of its own. If the inspection does not return in time, inspect abandons it
// together with the inspector, whose state it may still write.
func (e *Worker) inspect(ctx context.Context, j scan.Inspection) scan.Finding {
	if err := e.refused(j); err != nil {
		return scan.Finding{Err: err}
	}
	inspector, found := e.inspector, make(chan scan.Finding, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		began := scan.ThreadTime()
		f := inspector.inspectContainer(ctx, j)
		f.Spent = scan.ThreadTime() - began
		found <- f
	}()
	late := time.NewTimer(e.patience)
	defer late.Stop()
	select {
	case f := <-found:
		return f
	case <-ctx.Done():
		return scan.Finding{Err: ctx.Err()}
	case <-late.C:
	}
	e.abandoned[j.Container] = blocked{j.Namespace, found}
	e.inspector = e.newInspector()
	return scan.Finding{Spent: maxInspection, Err: fmt.Errorf("%w: abandoned after %s", errBlocked, e.patience)}
}

// refused returns an error if blocked inspections prevent another one.
func (e *Worker) refused(j scan.Inspection) error {
	if _, blocked := e.abandoned[j.Container]; blocked {
		return errBlocked
	}
	others := 0
	for _, b := range e.abandoned {
		if b.namespace == j.Namespace {
			others++
		}
	}
	if others >= maxAbandonedPerNamespace {
		return fmt.Errorf("the inspections of %d other containers of its namespace are blocked", others)
	}
	return nil
}

// waitForSlot waits while too many inspections are blocked; false: ctx has ended. After some minutes the liveness check
// fails, because only a restart ends the blocked threads.
func (e *Worker) waitForSlot(ctx context.Context) (ok bool) {
	if e.returned(); len(e.abandoned) < maxAbandoned {
		return true
	}
	defer e.watchdog.Begin(errand(fmt.Sprintf("%d inspections that are blocked", len(e.abandoned))))()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for len(e.abandoned) >= maxAbandoned {
		select {
		case <-ctx.Done():
			return false
		case <-again.C:
			e.returned()
		}
	}
	return true
}

// returned removes abandoned inspections that have returned.
func (e *Worker) returned() {
	for container, b := range e.abandoned {
		select {
		case <-b.finding:
			delete(e.abandoned, container)
		default:
		}
	}
}
