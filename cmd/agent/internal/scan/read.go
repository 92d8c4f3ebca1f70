// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"io"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/flightrecorder"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
)

// read takes one sample of a container and returns when the next is due.
func (l *Loop) read(c *container, now time.Time) {
	sample, err := l.sample(c, now)
	if err != nil { // it has gone, or is going
		l.ended(c, now)
		l.search = time.Time{}
		l.Metrics.readings.WithLabelValues("failed").Inc()
		return
	}
	l.take(c, sample)
	c.urgency = c.recorder.Urgency(now)
	c.due = now.Add(l.governor.Interval(c.urgency))
	l.predict(c, sample.Partial, now)
}

// take hands a sample to the recorder, and takes note of what is to be written immediately.
func (l *Loop) take(c *container, sample flightrecorder.Sample) {
	kills := c.recorder.Kills()
	if c.recorder.Add(sample) {
		c.trigger = true
		if c.recorder.Kills() > kills {
			l.kill(c)
			c.rescue.watch.Killed()
		}
	}
	if sample.Processes != nil {
		c.processesRead = sample.At
	}
}

// ended takes note that the cgroup of a container has gone.
func (l *Loop) ended(c *container, now time.Time) {
	c.gone = now
	c.gauge.Close()
	delete(l.alarms.hurried, c.ContainerID)
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

// usageOnly is a sample of the usage alone.
func usageOnly(usage memory.Bytes, now time.Time) flightrecorder.Sample {
	return flightrecorder.Sample{
		At: now, PodLimit: cgroup.Unlimited, Partial: true, Reading: cgroup.Reading{Usage: usage},
	}
}

// sampleFully reads all that the kernel counts.
func (l *Loop) sampleFully(c *container, now time.Time) (s flightrecorder.Sample, err error) {
	s.At, s.PodLimit = now, cgroup.Unlimited
	if s.Reading, err = c.gauge.Read(); err != nil {
		return s, err
	}
	if limit, err := l.Tree.Limit(c.PodDir); err == nil {
		s.PodLimit = limit
	}
	before, _, _ := c.recorder.Last()
	if s.Reading.Kills != before.Kills || now.Sub(c.processesRead) >= processesEvery(c.recorder, now) {
		s.Processes = l.processesOf(c)
	}
	l.Metrics.readings.WithLabelValues("full").Inc()
	return s, nil
}

// processesEvery is how often the processes of a container are listed, so that one knows which were there before a
// kill.
func processesEvery(r *flightrecorder.Recorder, now time.Time) time.Duration {
	switch k := r.LastKill(); {
	case k != nil && now.Sub(k.Time) <= flightrecorder.Dying:
		return 0
	case r.Urgency(now) == flightrecorder.Near:
		return time.Second
	}
	return 30 * time.Second
}

// processesMost bounds the processes of a container that are read. A container with more forks continuously, and more
// of its processes add no information.
const processesMost = 64

// processesOf lists the processes of a container; not nil.
func (l *Loop) processesOf(c *container) []flightrecorder.Process {
	out := []flightrecorder.Process{}
	pids, _, err := l.Tree.Processes(c.Dir)
	if err != nil {
		return out
	}
	var numbers [][]int // of the processes in out, by PID namespace
	depth := math.MaxInt
	for _, pid := range pids[:min(len(pids), processesMost)] {
		status, ok := l.process(c.ContainerID, pid)
		if !ok || len(status.NSPIDs) == 0 {
			continue
		}
		depth = min(depth, len(status.NSPIDs))
		// One that was killed holds its memory until the kernel has ended it, which took more than 2 s on a busy node.
		// Then it holds none, as long as its parent does not ask for its exit code.
		if status.Killed || status.RSS == 0 {
			continue
		}
		out = append(out, flightrecorder.Process{PID: pid, Name: printable(status.Name), Resident: status.RSS})
		numbers = append(numbers, status.NSPIDs)
	}
	// The namespace of the container is the outermost one of its processes. Sandboxes of browsers and containers in the
	// container have namespaces of their own, each with a process 1.
	for i := range out {
		out[i].InnerPID = numbers[i][depth-1]
	}
	return out
}

// process reads the status of a process of a container. Not ok: the container has no such process.
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

// printable is the name of a process, which it chooses itself: of other bytes than letters, digits and a few signs
// nothing is repeated.
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
