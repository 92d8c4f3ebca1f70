// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/flightrecorder"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
)

// read takes one sample of a container and sets when the next is due.
func (l *Loop) read(c *container, now time.Time) {
	sample, err := l.sample(c, now)
	if err != nil { // removed, or being removed
		l.markEnded(c, now)
		l.search = time.Time{}
		l.Metrics.readings.WithLabelValues("failed").Inc()
		return
	}
	l.take(c, sample)
	c.urgency = c.recorder.Urgency(now)
	c.due = now.Add(l.governor.Interval(c.urgency))
	l.predict(c, sample.Partial, now)
}

// take adds a sample to the recorder, and triggers a write if it shows a kill or a stall.
func (l *Loop) take(c *container, sample flightrecorder.Sample) {
	kills := c.recorder.Kills()
	if c.recorder.Add(sample) {
		c.trigger = true
		if c.recorder.Kills() > kills {
			l.recordKill(c)
			c.rescue.watch.Killed()
		}
	}
	if sample.Processes != nil {
		c.processesRead, c.processesUsage = sample.At, sample.Reading.Usage
	}
}

// markEnded records that the cgroup of a container was removed.
func (l *Loop) markEnded(c *container, now time.Time) {
	c.gone = now
	c.gauge.Close()
	l.lastEvents(c, now)
	delete(l.alarms.imminent, c.ContainerID)
}

// lastEvents passes the final counts of the pod's cgroup to the recorder of a container that ended.
func (l *Loop) lastEvents(c *container, now time.Time) {
	pod := l.Tree.Events(c.PodDir)
	c.recorder.Ended(pod, l.neighborReached(c, pod), now)
}

func (l *Loop) sample(c *container, now time.Time) (flightrecorder.Sample, error) {
	usage, err := c.gauge.Usage()
	if err != nil {
		return flightrecorder.Sample{}, err
	}
	if c.recorder.WantsFull(usage, now) {
		return l.sampleFully(c, now)
	}
	l.Metrics.readings.WithLabelValues("usage").Inc()
	return usageOnly(usage, now), nil
}

// neighborReached reports whether another container of the pod may have reached its own limit since this container was
// last read. The event counts of the pod's cgroup include that.
func (l *Loop) neighborReached(c *container, pod cgroup.Events) bool {
	_, _, since := c.recorder.Last()
	for _, o := range l.containers {
		switch {
		case !pod.Known || o == c || o.PodDir != c.PodDir:
		case o.gone.After(since), o.gone.IsZero() && o.recorder.ReachedSince(since, l.Tree.Events(o.Dir)):
			return true
		}
	}
	return false
}

// usageOnly returns a sample of usage alone.
func usageOnly(usage memory.Bytes, now time.Time) flightrecorder.Sample {
	return flightrecorder.Sample{
		At: now, PodLimit: cgroup.Unlimited, Partial: true, Reading: cgroup.Reading{Usage: usage},
	}
}

// sampleFully reads all counters.
func (l *Loop) sampleFully(c *container, now time.Time) (s flightrecorder.Sample, err error) {
	s.At, s.PodLimit = now, cgroup.Unlimited
	if s.Reading, err = c.gauge.Read(); err != nil {
		return s, err
	}
	if limit, err := l.Tree.Limit(c.PodDir); err == nil {
		s.PodLimit = limit
	}
	s.Pod = l.Tree.Events(c.PodDir)
	before, _, _ := c.recorder.Last()
	if s.Reading.Kills > before.Kills {
		s.Neighbor = l.neighborReached(c, s.Pod)
	}
	// Usage that doubled may belong to new processes, or to new programs in them.
	grown := s.Reading.Usage >= 2*c.processesUsage
	if s.Reading.Kills != before.Kills || grown || now.Sub(c.processesRead) >= processesEvery(c.recorder, now) {
		s.Processes = l.processesOf(c)
	}
	l.Metrics.readings.WithLabelValues("full").Inc()
	return s, nil
}

// processesEvery returns the interval between lists of a container's processes. The report of a kill has the last list.
func processesEvery(r *flightrecorder.Recorder, now time.Time) time.Duration {
	switch k := r.LastKill(); {
	case k != nil && now.Sub(k.Time) <= flightrecorder.ExitGrace:
		return 0
	case r.Urgency(now) == flightrecorder.Near:
		return time.Second
	}
	return 30 * time.Second
}

// maxProcesses bounds the processes read per container. Containers with more processes usually fork constantly.
const maxProcesses = 64

// processesOf lists the processes of a container. The list is not nil, even if it is empty.
func (l *Loop) processesOf(c *container) []flightrecorder.Process {
	out := []flightrecorder.Process{}
	pids, _, err := l.Tree.Processes(c.Dir)
	if err != nil {
		return out
	}
	var numbers [][]int // the PIDs of each process in out, from the outermost PID namespace to the innermost
	depth := math.MaxInt
	for _, pid := range pids[:min(len(pids), maxProcesses)] {
		status, ok := l.process(c.ContainerID, pid)
		if !ok || len(status.NSPIDs) == 0 {
			continue
		}
		depth = min(depth, len(status.NSPIDs))
		// A killed process keeps its memory until it exits, for more than 2 s on a busy node. A zombie has no memory.
		if status.Killed || status.RSS == 0 {
			continue
		}
		out = append(out, flightrecorder.Process{PID: pid, Name: printable(status.Name), Resident: status.RSS})
		numbers = append(numbers, status.NSPIDs)
	}
	// The process in the fewest PID namespaces is in the container's own. Browser sandboxes and nested containers have
	// further namespaces, each with a process 1.
	for i := range out {
		out[i].InnerPID = numbers[i][depth-1]
	}
	return out
}

// process reads the status of a process of a container. ok is false if the container has no such process.
func (l *Loop) process(container string, pid int) (status procmem.Status, ok bool) {
	dir, err := fs.Sub(l.Proc, strconv.Itoa(pid))
	if err != nil {
		return status, false
	}
	if open, ok := dir.(io.Closer); ok {
		defer func() { _ = open.Close() }()
	}
	if !Holds(container, pid, dir) {
		return status, false
	}
	status, err = procmem.StatusOf(dir)
	return status, err == nil
}

// printable replaces all but letters, digits and a few signs in the name of a process, which the process controls.
func printable(name string) string {
	if name == "" {
		return "unnamed"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("-_.:/+#@ ()", r):
			return r
		}
		return '?'
	}, name)
}

// Holds reports whether a process still runs in a container. The kernel may have reused a listed PID for a process of a
// pod that declines inspections. dir is the process's directory in /proc; later reads through it are of the same
// process.
func Holds(container string, pid int, dir fs.FS) bool {
	if pid == os.Getpid() {
		return true // the agent itself: its cgroup namespace shows its path as "/"
	}
	text, err := fs.ReadFile(dir, "cgroup")
	return err == nil && cgroup.InContainer(container, text)
}

// ThreadTime returns the processor time that the calling thread has used so far. To compare two values, lock the
// goroutine to its thread.
func ThreadTime() time.Duration { return used(unix.CLOCK_THREAD_CPUTIME_ID) }

// ProcessTime returns the processor time that the agent has used so far.
func ProcessTime() time.Duration { return used(unix.CLOCK_PROCESS_CPUTIME_ID) }

// used reads a processor time clock; 0 on error. getrusage would be updated only at the kernel's ticks.
func used(clock int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
