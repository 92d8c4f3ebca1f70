// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
)

// Unknown is a counter that the kubelet does not report.
const Unknown int64 = -1

// Counters are the counters of one node's running containers, from /metrics/cadvisor. A missing container is unknown.
type Counters map[memory.ContainerRef]Counter

// Counter has the counters of one container instance. They restart at zero with the instance, and OOMEvents also with
// the kubelet (from Kubernetes 1.37 on), so compare two readings of one Instance and treat a decrease as a restart.
type Counter struct {
	Instance string    // the container's ID in the runtime; empty if the kubelet does not report it
	Started  time.Time // start of this instance; zero if the kubelet does not report it
	// OOMEvents is container_oom_events_total: the processes that the kernel killed in this container while it ran. These
	// are child processes: a kill of the main process ends the series, and is in the pod's status.
	OOMEvents int64
	// SharedAndKernel is the usage that is neither page cache nor anonymous memory (see [memory.Sample.SharedAndKernel]):
	// container_memory_usage_bytes minus the active and inactive file pages and minus RSS, on cgroup v1 and v2. Usage does
	// not include swap.
	SharedAndKernel memory.Bytes
	Measured        time.Time // when SharedAndKernel was measured; zero: unknown
}

// These series are read, about 4 % of a kubelet's response. All other lines are skipped without parsing.
const (
	oomEvents   = "container_oom_events_total"
	startedTime = "container_start_time_seconds"
	usageBytes  = "container_memory_usage_bytes"
	activeFile  = "container_memory_total_active_file_bytes"
	inactive    = "container_memory_total_inactive_file_bytes"
	rssBytes    = "container_memory_rss"
)

const (
	longestLine = 16 << 10 // bytes of one series; labels of containers take some 500 bytes
	maxKept     = 4 << 20  // bytes of all series that are read: six of 500 bytes for each of 1,400 containers
)

var (
	errLongLine   = fmt.Errorf("a line is longer than %s", memory.Bytes(longestLine))
	errMuchKept   = fmt.Errorf("the series memfit reads take more than %s", memory.Bytes(maxKept))
	errNoCounters = errors.New("it has none of the expected series: these are not the kubelet's cAdvisor metrics")
)

// Namer returns the container with a runtime ID; ok is false if it is not found.
type Namer func(pod types.UID, id string) (c memory.ContainerRef, ok bool)

// DecodeCounters reads /metrics/cadvisor in the Prometheus text format. If containerd did not respond to cAdvisor when
// a container started, its series lack namespace, pod and container. name resolves such series; nil: skip them.
func DecodeCounters(r io.Reader, name Namer) (Counters, error) {
	lines, err := wantedLines(r)
	var families map[string]*dto.MetricFamily
	if err == nil {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err = parser.TextToMetricFamilies(lines)
	}
	if err == nil && len(families) == 0 {
		err = errNoCounters
	}
	if err != nil {
		return nil, fmt.Errorf("reading the kubelet's cAdvisor metrics: %w", err)
	}
	return collect(families, name), nil
}

// wantedLines returns the lines of the series that are read. Text without a final line break is truncated: an error.
func wantedLines(r io.Reader) (*bytes.Buffer, error) {
	var kept bytes.Buffer
	lines := bufio.NewReaderSize(r, longestLine)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, errLongLine
		case errors.Is(err, io.EOF) && len(line) == 0:
			return &kept, nil
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case wanted(line):
			if kept.Len()+len(line) > maxKept {
				return nil, errMuchKept
			}
			kept.Write(line)
		}
	}
}

// wanted reports whether a line is a sample of a series that is read.
func wanted(line []byte) bool {
	name, labels, labeled := bytes.Cut(line, []byte("{"))
	if !labeled {
		return false
	}
	switch string(name) {
	case oomEvents, startedTime, usageBytes, activeFile, inactive, rssBytes:
		return !ofPod(labels)
	}
	return false
}

// ofPod reports whether labels name a pod but no container, like those of pods and sandboxes: two thirds of all series.
// A series without any name may be a container's (see [DecodeCounters]).
func ofPod(labels []byte) bool {
	return bytes.HasPrefix(labels, []byte(`container="",`)) && !bytes.Contains(labels, []byte(`,pod=""`))
}

// instance identifies a container instance. Right after a restart, the kubelet also reports the previous instance.
type instance struct {
	ref memory.ContainerRef
	id  string // in the runtime
}

// collect returns the counters of the newest instance of each container.
func collect(families map[string]*dto.MetricFamily, name Namer) Counters {
	all := map[instance]*instanceSeries{}
	for series, family := range families {
		for _, m := range family.GetMetric() {
			at, ok := instanceOf(m.GetLabel(), name)
			if !ok {
				continue
			}
			c := all[at]
			if c == nil {
				c = &instanceSeries{Counter: Counter{Instance: at.id, OOMEvents: Unknown}}
				all[at] = c
			}
			c.set(series, m.GetUntyped().GetValue(), m.GetTimestampMs()) // untyped, because no TYPE line was kept
		}
	}
	newest := Counters{}
	for at, c := range all {
		if n, ok := newest[at.ref]; !ok || c.Started.After(n.Started) || c.Started.Equal(n.Started) &&
			c.Instance > n.Instance {
			newest[at.ref] = c.counter()
		}
	}
	return newest
}

// instanceSeries collects the series of one instance.
type instanceSeries struct {
	Counter

	usage, active, inactive, rss amount
}

// amount is a number of bytes and when the kubelet measured it, in Unix milliseconds; 0: unknown.
type amount struct {
	bytes memory.Bytes
	at    int64
}

// counter returns the counter of the instance. It computes SharedAndKernel if all its series are of one measurement.
func (l *instanceSeries) counter() Counter {
	if at := l.usage.at; at > 0 && l.active.at == at && l.inactive.at == at && l.rss.at == at {
		l.SharedAndKernel = l.usage.bytes.Minus(l.active.bytes).Minus(l.inactive.bytes).Minus(l.rss.bytes)
		l.Measured = time.UnixMilli(at).UTC()
	}
	return l.Counter
}

// instanceOf returns the instance that labels name. ok is false for a series of a pod, its sandbox or the node.
func instanceOf(labels []*dto.LabelPair, name Namer) (at instance, ok bool) {
	for _, l := range labels {
		switch l.GetName() {
		case "container":
			at.ref.Container = l.GetValue()
		case "pod":
			at.ref.Pod = l.GetValue()
		case "namespace":
			at.ref.Namespace = l.GetValue()
		case "id":
			var uid string
			uid, at.id = usage.ParseCgroup(l.GetValue())
			at.ref.UID = types.UID(uid)
		}
	}
	if at.ref.Pod == "" && at.ref.UID != "" && at.id != "" && name != nil {
		at.ref, ok = name(at.ref.UID, at.id)
		return at, ok
	}
	return at, at.ref.Container != "" && at.ref.Container != "POD" && at.ref.Pod != "" && at.ref.Namespace != ""
}

// set stores the value of a series. It ignores an invalid value, which remains unknown.
func (l *instanceSeries) set(series string, v float64, at int64) {
	if !(v >= 0 && v < math.MaxInt64) { // NaN is neither
		return
	}
	switch series {
	case usageBytes:
		l.usage = amount{memory.Bytes(v), at}
	case activeFile:
		l.active = amount{memory.Bytes(v), at}
	case inactive:
		l.inactive = amount{memory.Bytes(v), at}
	case rssBytes:
		l.rss = amount{memory.Bytes(v), at}
	case oomEvents:
		l.OOMEvents = int64(v)
	case startedTime:
		if v > 0 && v < 1<<40 { // seconds: some 35,000 years, within time.Time
			l.Started = time.Unix(int64(v), 0).UTC()
		}
	}
}

// KillCounters returns a source that reads kill counters. Reading it also makes the samples of [Source.Read] exact.
func (s *Source) KillCounters(now func() time.Time) usage.Source { return killCounters{s, now} }

type killCounters struct {
	*Source
	now func() time.Time
}

// Name implements [usage.Source].
func (killCounters) Name() string { return "kubelet-counters" }

// Read returns the kill counters of a node, and no samples. Their time is that of the response, after all kills.
func (k killCounters) Read(ctx context.Context, node usage.Node) (usage.Reading, error) {
	read, err := k.Counters(ctx, node)
	r := usage.Reading{Source: k.Name()}
	for ref, c := range read {
		if c.OOMEvents != Unknown {
			kills := memory.KillCounter{Container: ref, ContainerID: c.Instance, Count: c.OOMEvents, Time: k.now()}
			r.Counters = append(r.Counters, kills)
		}
	}
	return r, err
}
